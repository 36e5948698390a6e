// The ops of a pass. Each is recorded once and run many times, by all threads together: run(pass, thread) does this
// thread's part; a barrier comes after it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "activations.h"
#include "attention.h"
#include "cache.h"
#include "layout.h"
#include "linear.h"
#include "pack.h"
#include "pool.h"

namespace paceline {

struct Value {  // an activation: [rows, width] float32
  int width;
  bool sampled;  // rows are the sampled ones
  std::shared_ptr<std::vector<float>> data;  // replaced when it grows: who still looks at the old one keeps it
};

// Scratch of one thread, kept between passes; on cache lines of its own.
struct alignas(64) ThreadScratch {
  ActivationStorage activations;
  AttentionScratch attention;
};

struct Pass {
  Layout layout;
  Pool& pool;
  std::vector<Value>& values;
  std::vector<ThreadScratch> scratch;
  ActivationStorage shared;  // where rows are prepared by all threads together
  std::vector<float> partials;

  Pass(Pool& pool, std::vector<Value>& values) : pool(pool), values(values), scratch(pool.threads()) {}

  const Batch& batch() const { return layout.batch(); }
  int64_t rows(const Value& v) const { return v.sampled ? batch().sampled_rows : batch().rows; }
  float* data(int value) { return values[value].data->data(); }
};

class Op {
 public:
  virtual ~Op() = default;
  virtual void begin(Pass&) {}  // on the caller's thread, before the pass starts: the place to grow memory
  // What this thread will read first, asked for while the op before it ends: the memory never waits for a barrier.
  virtual void ask(const Pass&, int) const noexcept {}
  // What it will need that lies apart, line by line, asked for before the op before it begins.
  virtual void foresee(const Pass&, int) const noexcept {}
  virtual void run(Pass& pass, int thread) noexcept = 0;
};

struct NormParameters {
  std::vector<float> weight;
  float eps;
};

class EmbedOp : public Op {
 public:
  EmbedOp(std::shared_ptr<Weight> table, int out) : table_(std::move(table)), out_(out) {}
  void run(Pass& pass, int thread) noexcept override {
    const Share share(pass.batch().rows, thread, pass.pool.threads());
    for (int64_t r = share.begin; r < share.end; ++r)
      weight_row(*table_, static_cast<int>(pass.batch().ids[r]), pass.data(out_) + r * table_->inputs);
  }

 private:
  std::shared_ptr<Weight> table_;
  int out_;
};

class FeedOp : public Op {
 public:
  explicit FeedOp(int out) : out_(out) {}
  void run(Pass& pass, int thread) noexcept override {
    const int64_t width = pass.values[out_].width;
    const Share share(pass.batch().rows, thread, pass.pool.threads());
    std::copy(pass.batch().features + share.begin * width, pass.batch().features + share.end * width,
              pass.data(out_) + share.begin * width);
  }

 private:
  int out_;
};

class SelectOp : public Op {
 public:
  SelectOp(int in, int out) : in_(in), out_(out) {}
  void run(Pass& pass, int thread) noexcept override {
    const int64_t width = pass.values[in_].width;
    const Share share(pass.batch().sampled_rows, thread, pass.pool.threads());
    for (int64_t i = share.begin; i < share.end; ++i)
      std::copy_n(pass.data(in_) + pass.batch().sampled[i] * width, width, pass.data(out_) + i * width);
  }

 private:
  int in_, out_;
};

class LinearOp : public Op {
 public:
  LinearOp(int in, std::shared_ptr<Weight> weight, std::optional<NormParameters> norm, int residual, bool gate,
           bool silu, int out, Precision precision)
      : in_(in), residual_(residual), out_(out), gate_(gate), silu_(silu), weight_(std::move(weight)), norm_(std::move(norm)),
        precision_(precision) {}

  void begin(Pass& pass) override {
    const int64_t rows = pass.rows(pass.values[in_]);
    work_.reset(weight_->blocks(), pass.pool.threads());
    if (alone(rows)) {
      for (auto& scratch : pass.scratch) scratch.activations.reserve(kRowTile, weight_->inputs);
    } else {
      pass.shared.reserve(rows, weight_->inputs);
    }
  }

  void ask(const Pass& pass, int thread) const noexcept override {
    const uint8_t* first = weight_->block(Share(weight_->blocks(), thread, pass.pool.threads()).begin);
    for (size_t line = 0; line < kPrefetch; line += 64) prefetch(first, line);
  }

  void run(Pass& pass, int thread) noexcept override {
    const int64_t rows = pass.rows(pass.values[in_]);
    const int threads = pass.pool.threads();
    // One tile is prepared by every thread for itself: cheaper than meeting at a barrier.
    const Activations x = (alone(rows) ? pass.scratch[thread].activations : pass.shared).rows(weight_->inputs);
    const Share mine = alone(rows) ? Share(1, 0, 1) : Share(row_tiles(rows), thread, threads);
    for (int64_t tile = mine.begin; tile < mine.end; ++tile)
      prepare(pass, x, tile * kRowTile, std::min((tile + 1) * int64_t{kRowTile}, rows));
    if (!alone(rows)) pass.pool.barrier();
    const Epilogue epilogue{pass.data(out_), residual_ < 0 ? nullptr : pass.data(residual_), pass.values[out_].width,
                            silu_};
    linear_blocks(*weight_, x, rows, gate_, epilogue, work_, thread);
  }

 private:
  static bool alone(int64_t rows) { return rows <= kRowTile; }

  // Rows [begin, end), of one tile.
  void prepare(Pass& pass, const Activations& x, int64_t begin, int64_t end) const {
    const bool rounded = weight_->quantised(), as_they_are = rounded && !norm_ && x.inputs == x.groups * kGroup;
    if (rounded) std::fill_n(x.tile_fine(begin), x.groups, 0);
    for (int64_t r = begin; r < end; ++r) {
      const float* row = pass.data(in_) + r * x.inputs;
      if (!as_they_are) {
        put_row(x, r, row, norm_ ? norm_->weight.data() : nullptr, norm_ ? norm_->eps : 0);
        row = x.row(r);
      }
      if (rounded) quantise_row(x, r, row, precision_);
    }
  }

  int in_, residual_, out_;
  bool gate_, silu_;
  std::shared_ptr<Weight> weight_;
  std::optional<NormParameters> norm_;
  Precision precision_;
  SharedWork work_;  // blocks of the weight
};

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
