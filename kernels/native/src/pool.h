// A few threads that work on one pass together: they spin between its ops, and park when there is nothing to do.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "simd.h"

namespace paceline {

class Pool {
 public:
  // Throws std::system_error where a thread cannot be started.
  explicit Pool(int threads) : threads_(threads) {
    try {
      for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Pool() { stop(); }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  // Calls body(t) once for each thread t and returns when all are done; the caller is thread 0. The body must not throw.
  // A second caller waits for the first.
  void run(const std::function<void(int)>& body) {
    std::lock_guard<std::mutex> alone(running_);
    if (threads_ == 1) return body(0);
    body_ = &body;
    done_.store(0, std::memory_order_relaxed);
    {
      // The lock orders the new epoch against a worker that is about to park: it cannot miss the call.
      std::lock_guard<std::mutex> lock(mutex_);
      epoch_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();  // without a sleeper this is no system call
    body(0);
    spin_until([&] { return done_.load(std::memory_order_acquire) == threads_ - 1; });
  }

  // Within run: waits until every thread is here. What each wrote before is seen by all after.
  void barrier() {
    if (threads_ == 1) return;
    const uint32_t generation = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == threads_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(generation + 1, std::memory_order_release);
    } else {
      spin_until([&] { return generation_.load(std::memory_order_acquire) != generation; });
    }
  }

 private:
  // Long enough to bridge the host's work between two steps, short enough that an idle server is idle.
  static constexpr std::chrono::microseconds kSpinBeforePark{1500};
  static constexpr int kSpinsBeforeYield = 4000;

  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      epoch_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
    workers_.clear();
  }

  template <class Done>
  void spin_until(Done&& done) {
    for (int spins = 0; !done();) {
      pause();
      if (spins < kSpinsBeforeYield) ++spins;
      else sched_yield();  // more threads than cores: let the others get there
    }
  }

  void work(int thread) {
    uint32_t seen = 0;
    while (true) {
      const auto idle_since = std::chrono::steady_clock::now();
      for (int spins = 1; epoch_.load(std::memory_order_acquire) == seen; ++spins) {
        pause();
        if (spins % 64 == 0 && std::chrono::steady_clock::now() - idle_since > kSpinBeforePark) {
          std::unique_lock<std::mutex> lock(mutex_);
          wake_.wait(lock, [&] { return epoch_.load(std::memory_order_acquire) != seen; });
        }
      }
      ++seen;
      if (stopping_) return;
      (*body_)(thread);
      done_.fetch_add(1, std::memory_order_release);
    }
  }

  const int threads_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* body_ = nullptr;
  bool stopping_ = false;
  std::mutex mutex_, running_;
  std::condition_variable wake_;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
};

// The part of `total` units that falls to thread t of n: contiguous, sizes differ by at most one.
struct Share {
  int64_t begin, end;
  Share(int64_t total, int t, int n) : begin(total * t / n), end(total * (t + 1) / n) {}
};

// Units of work that threads share as they go: each takes its own share from the front, and who is done with it takes
// from the back of another's. Cores are seldom equally fast, and on a virtual machine one may stand still for a while.
class SharedWork {
 public:
  struct Units {
    int64_t begin, end;
    bool none() const { return begin >= end; }
  };

  // Before a pass. total: below 2^32.
  void reset(int64_t total, int threads) {
    if (threads != threads_) {
      parts_ = std::make_unique<Part[]>(threads);
      threads_ = threads;
    }
    for (int t = 0; t < threads; ++t) {
      const Share share(total, t, threads);
      parts_[t].left.store(packed(share.begin, share.end), std::memory_order_relaxed);
    }
  }

  // The next units for this thread, at most `most` of them and no more than half of what is left, so that there is
  // something to help with; none when all are taken.
  Units take(int thread, int64_t most) {
    for (int i = 0; i < threads_; ++i) {
      const int owner = (thread + i) % threads_;
      auto& left = parts_[owner].left;
      uint64_t now = left.load(std::memory_order_relaxed);
      while (true) {
        const int64_t begin = static_cast<int64_t>(now >> 32), end = static_cast<int64_t>(now & 0xffffffffu);
        if (begin >= end) break;
        const int64_t count = std::min(most, (end - begin + 1) / 2);
        const Units mine = owner == thread ? Units{begin, begin + count} : Units{end - count, end};
        const uint64_t rest = owner == thread ? packed(mine.end, end) : packed(begin, mine.begin);
        if (left.compare_exchange_weak(now, rest, std::memory_order_relaxed)) return mine;
      }
    }
    return {0, 0};
  }

 private:
  struct alignas(64) Part {
    std::atomic<uint64_t> left{0};  // begin in the upper half, end in the lower
  };
  static uint64_t packed(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end);
  }

  int threads_ = 0;
  std::unique_ptr<Part[]> parts_;
};

}  // namespace paceline
