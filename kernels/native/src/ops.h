// The ops of a pass. Each is recorded once and run many times, by all threads together: run(pass, thread) does this
// thread's part; a barrier comes after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "activations.h"
#include "attention.h"
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
      for (auto& scratch : pass.scratch) scratch.activations.reserve(kRowTile, weight_->inputs, precision_);
    } else {
      pass.shared.reserve(rows, weight_->inputs, precision_);
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
    const Activations x =
        (alone(rows) ? pass.scratch[thread].activations : pass.shared).rows(weight_->inputs, precision_);
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
    const bool rounded = weight_->quantised(), as_they_are = rounded && !norm_ && x.inputs % kGroup == 0;
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

}  // namespace paceline
