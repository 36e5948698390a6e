// A few threads that work on one pass together: they spin between its ops, and park when there is nothing to do.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "simd.h"

namespace paceline {

class Pool {
 public:
  explicit Pool(int threads) : threads_(threads) {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
  }

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      epoch_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  // Calls body(t) once for each thread t and returns when all are done; the caller is thread 0.
  void run(const std::function<void(int)>& body) {
    if (threads_ == 1) return body(0);
    body_ = &body;
    done_.store(0, std::memory_order_relaxed);
    {
      // The lock orders the new epoch against a worker that is about to park: it cannot miss the call.
      std::lock_guard<std::mutex> lock(mutex_);
      epoch_.fetch_add(1, std::memory_order_release);
    }
    if (parked_.load(std::memory_order_acquire) > 0) wake_.notify_all();
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
  static constexpr int kSpinsBeforePark = 40000;
  static constexpr int kSpinsBeforeYield = 4000;

  template <class Done>
  void spin_until(Done&& done) {
    for (int spins = 0; !done(); ++spins) {
      pause();
      if (spins >= kSpinsBeforeYield) sched_yield();  // more threads than cores: let the others get there
    }
  }

  void work(int thread) {
    uint32_t seen = 0;
    while (true) {
      int spins = 0;
      while (epoch_.load(std::memory_order_acquire) == seen && ++spins < kSpinsBeforePark) pause();
      if (epoch_.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        parked_.fetch_add(1, std::memory_order_release);
        wake_.wait(lock, [&] { return epoch_.load(std::memory_order_acquire) != seen; });
        parked_.fetch_sub(1, std::memory_order_release);
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
  std::mutex mutex_;
  std::condition_variable wake_;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<int> parked_{0};
};

// The part of `total` units that falls to thread t of n: contiguous, sizes differ by at most one.
struct Share {
  int64_t begin, end;
  Share(int64_t total, int t, int n) : begin(total * t / n), end(total * (t + 1) / n) {}
};

}  // namespace paceline
