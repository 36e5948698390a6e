// The ops that write and read the cache: rotation with the store of keys and values, and attention.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attention.h"
#include "cache.h"
#include "ops.h"

namespace paceline {

struct Rotation {
  std::vector<float> cos, sin;  // [positions, D/2]
  int64_t positions;
};

class RopeStoreOp : public Op {
 public:
  RopeStoreOp(int qkv, std::shared_ptr<Cache> cache, int layer, std::shared_ptr<Rotation> rotation,
              std::optional<NormParameters> q_norm, std::optional<NormParameters> k_norm)
      : qkv_(qkv), layer_(layer), cache_(std::move(cache)), rotation_(std::move(rotation)),
        q_norm_(std::move(q_norm)), k_norm_(std::move(k_norm)) {}

  // A key's channels lie in as many cache lines: no two steps write to the same ones, so all would have to be waited for.
  void foresee(const Pass& pass, int thread) const noexcept override {
    const Batch& b = pass.batch();
    if (b.rows > kFew) return;  // whole tiles of keys: their lines serve many rows
    const size_t value_bytes = cache_->head_dim * cache_->element_bytes();
    const Heads heads(*this, pass, thread);
    int64_t last = -1;
    for (int64_t r = 0; r < b.rows; ++r) {
      const int64_t block = b.slots[r] / kPage, at = b.slots[r] % kPage;
      for (int64_t h = heads.keys.begin; block != last && h < heads.keys.end; ++h)
        for (size_t line = 0; line < cache_->side_bytes(); line += 64) prefetch_to_write(cache_->keys(layer_, block, h) + line);
      for (int64_t h = heads.values.begin; h < heads.values.end; ++h)
        for (size_t line = 0; line < value_bytes; line += 64)
          prefetch_to_write(cache_->values(layer_, block, h) + at * value_bytes + line);
      last = block;
    }
  }

  void run(Pass& pass, int thread) noexcept override {
    const Batch& b = pass.batch();
    const int d_size = cache_->head_dim, half = d_size / 2, width = pass.values[qkv_].width;
    const int queries = width / d_size - 2 * cache_->heads;
    const float query_scale = 1.0f / std::sqrt(static_cast<float>(d_size));
    const auto norm_of = [](const auto& norm) { return norm ? &*norm : nullptr; };
    const Heads heads(*this, pass, thread);
    for (int64_t r = 0; r < b.rows; ++r) {
      float* const row = pass.data(qkv_) + r * width;
      const float* cos = rotation_->cos.data() + b.positions[r] * half;
      const float* sin = rotation_->sin.data() + b.positions[r] * half;
      for (int64_t h = heads.queries.begin; h < heads.queries.end; ++h)
        rotate(row + h * d_size, cos, sin, half, norm_of(q_norm_), query_scale);
      for (int64_t h = heads.keys.begin; h < heads.keys.end; ++h) {
        float* const key = row + (queries + h) * d_size;
        rotate(key, cos, sin, half, norm_of(k_norm_), 1.0f);
        cache_->store_key(layer_, b.slots[r], h, key);
      }
      for (int64_t h = heads.values.begin; h < heads.values.end; ++h)
        cache_->store_value(layer_, b.slots[r], h, row + (queries + cache_->heads + h) * d_size);
    }
  }

 private:
  // The heads of a thread. Keys and values are shared out from opposite ends, so that an odd number of heads is even.
  struct Heads {
    Share queries, keys, values;
    Heads(const RopeStoreOp& op, const Pass& pass, int thread)
        : Heads(pass.values[op.qkv_].width / op.cache_->head_dim, op.cache_->heads, thread, pass.pool.threads()) {}
    Heads(int all, int keys, int thread, int threads)
        : queries(all - 2 * keys, thread, threads), keys(keys, thread, threads), values(keys, threads - 1 - thread, threads) {}
  };

  static void rotate(float* x, const float* cos, const float* sin, int half, const NormParameters* norm, float scale) {
    if (norm) {
      const float factor = inverse_rms(x, 2 * half, norm->eps);
      for (int i = 0; i < 2 * half; ++i) x[i] = x[i] * factor * norm->weight[i];
    }
    const F by = set(scale);
    int i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      const F a = load(x + i), b = load(x + i + half), c = load(cos + i), s = load(sin + i);
      store(x + i, mul(sub(mul(a, c), mul(b, s)), by));
      store(x + i + half, mul(add(mul(b, c), mul(a, s)), by));
    }
    for (; i < half; ++i) {
      const float a = x[i], b = x[i + half];
      x[i] = (a * cos[i] - b * sin[i]) * scale;
      x[i + half] = (b * cos[i] + a * sin[i]) * scale;
    }
  }

  int qkv_, layer_;
  std::shared_ptr<Cache> cache_;
  std::shared_ptr<Rotation> rotation_;
  std::optional<NormParameters> q_norm_, k_norm_;
};

class AttentionOp : public Op {
 public:
  AttentionOp(int qkv, std::shared_ptr<Cache> cache, int layer, int query_heads, int out)
      : qkv_(qkv), out_(out), query_heads_(query_heads), cache_(std::move(cache)),
        attention_(*cache_, layer, query_heads) {}

  void begin(Pass& pass) override {
    next_.store(0, std::memory_order_relaxed);
    const size_t wanted = pass.layout.split()
                              ? static_cast<size_t>(pass.layout.partials() * query_heads_ * attention_.partial_size())
                              : 0;
    if (pass.partials.size() < wanted) pass.partials.resize(wanted);
    for (auto& scratch : pass.scratch) attention_.reserve(scratch.attention);
  }

  void run(Pass& pass, int thread) noexcept override {
    const auto& tasks = pass.layout.tasks();
    const int heads = cache_->heads;
    const int64_t total = static_cast<int64_t>(tasks.size()) * heads, stride = pass.values[qkv_].width;
    auto& scratch = pass.scratch[thread].attention;
    const auto take = [&] {
      const int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i < total) attention_.ask(pass.layout, tasks[i / heads], static_cast<int>(i % heads));
      return i;
    };
    // A task is taken while the one before it is worked on: what it reads first is then on its way.
    for (int64_t i = take(), after; i < total; i = after) {
      after = take();
      attention_.run(pass.layout, tasks[i / heads], static_cast<int>(i % heads), pass.data(qkv_), stride,
                     pass.data(out_), pass.partials.data(), scratch);
    }
    if (!pass.layout.split()) return;  // the same for all threads
    pass.pool.barrier();
    const Share share(pass.batch().rows * query_heads_, thread, pass.pool.threads());
    for (int64_t i = share.begin; i < share.end; ++i)
      attention_.merge(pass.layout, i / query_heads_, static_cast<int>(i % query_heads_), pass.partials.data(),
                       pass.data(out_));
  }

 private:
  int qkv_, out_, query_heads_;
  std::shared_ptr<Cache> cache_;
  Attention attention_;
  std::atomic<int64_t> next_{0};
};

}  // namespace paceline
