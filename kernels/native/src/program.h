// A recorded list of ops, run in one call per step: on a CPU what a captured graph is on a GPU.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops.h"
#include "pool.h"

namespace paceline {

class Program {
 public:
  // precision: of the activations of every linear op.
  Program(std::shared_ptr<Pool> pool, Precision precision)
      : precision(precision), pool_(std::move(pool)), pass_(*pool_, values_) {}

  const Precision precision;

  // What recorded ops can address; every batch is checked against it.
  void limit_vocabulary(int64_t size) { vocabulary_ = std::min(vocabulary_, size); }
  void limit_positions(int64_t size) { positions_ = std::min(positions_, size); }
  void limit_blocks(int64_t size) { blocks_ = std::min(blocks_, size); }

  // Ops read the batch's features, [R, width].
  void read_features(int width) {
    require(feature_width_ == 0 || feature_width_ == width, "a pass reads features of one width");
    feature_width_ = width;
  }

  int value(int width, bool sampled) {
    require(width >= 1, "a value has at least one column");
    values_.push_back({width, sampled, std::make_shared<std::vector<float>>()});
    return static_cast<int>(values_.size()) - 1;
  }
  int width(int value) const { return at(value).width; }
  bool sampled(int value) const { return at(value).sampled; }

  template <class T, class... Args>
  void add(Args&&... args) {
    ops_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
  }
  size_t size() const { return ops_.size(); }

  // Runs ops [begin, end) `repeats` times and returns seconds per run.
  double run(const Batch& batch, size_t begin, size_t end, int repeats) {
    require(feature_width_ == 0 || batch.features, "this pass reads features and the batch has none");
    require(feature_width_ == 0 || batch.feature_width == feature_width_,
            "the batch's features do not have the width that this pass reads");
    pass_.layout.build(batch, blocks_, positions_, vocabulary_);
    for (auto& v : values_) {
      const size_t wanted = static_cast<size_t>(pass_.rows(v)) * v.width;
      if (v.data->size() < wanted) v.data = std::make_shared<std::vector<float>>(wanted);
    }
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) {
      for (size_t op = begin; op < end; ++op) ops_[op]->begin(pass_);
      pool_->run([&](int thread) {
        for (size_t op = begin; op < end; ++op) {
          if (op + 1 < end) ops_[op + 1]->foresee(pass_, thread);
          ops_[op]->run(pass_, thread);
          if (op + 1 == end) break;
          ops_[op + 1]->ask(pass_, thread);
          pool_->barrier();
        }
      });
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
  }

  // The memory of a value, as the last run left it: at least `rows` rows.
  std::shared_ptr<std::vector<float>> data(int value, int64_t rows) const {
    const Value& v = at(value);
    require(rows >= 0 && rows <= static_cast<int64_t>(v.data->size()) / v.width, "the value has no such rows");
    return v.data;
  }

 private:
  const Value& at(int value) const {
    require(value >= 0 && value < static_cast<int>(values_.size()), "the program has no such value");
    return values_[value];
  }

  static constexpr int64_t kUnlimited = int64_t{1} << 40;

  std::shared_ptr<Pool> pool_;
  std::vector<Value> values_;
  Pass pass_;
  std::vector<std::unique_ptr<Op>> ops_;
  int64_t vocabulary_ = kUnlimited, positions_ = kUnlimited, blocks_ = kUnlimited;
  int feature_width_ = 0;  // of the features that ops read; 0: none do
};

}  // namespace paceline
