// The likeliest tokens of a row in order, under the noise that `sample` draws with: see the contract of `rank`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "noise.h"
#include "sample.h"
#include "simd.h"

namespace paceline {

struct Ranked {
  float value;
  int64_t token, column;
};
inline bool ranks_before(const Ranked& a, const Ranked& b) {
  if (a.value != b.value) return a.value > b.value;
  return a.token != b.token ? a.token < b.token : a.column < b.column;
}

// The k best of what is offered. Values below `least` are known not to be among them.
class Best {
 public:
  Best(size_t k, float least) : k_(k), least_(least) { heap_.reserve(k); }

  float floor() const { return heap_.size() < k_ ? least_ : heap_.front().value; }  // what lies below is not taken
  void offer(const Ranked& candidate) {
    if (heap_.size() == k_) {
      if (!ranks_before(candidate, heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end(), ranks_before);  // the last of them is in front
      heap_.pop_back();
    }
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), ranks_before);
  }
  const std::vector<Ranked>& sorted() {
    std::sort_heap(heap_.begin(), heap_.end(), ranks_before);
    return heap_;
  }

 private:
  size_t k_;
  float least_;
  std::vector<Ranked> heap_;
};

struct RankScratch {  // kept from row to row; columns padded to a multiple of kColumnsAtOnce
  std::vector<float> scaled, weights;
};

// Offers the columns of every piece of which some value reaches what `least` asks for; least() may rise meanwhile.
template <class Least, class Offer>
inline void scan(const std::vector<float>& values, int64_t n, Least&& least, Offer&& offer) {
  for (int64_t first = 0; first < n; first += kColumnsAtOnce) {
    if (largest_of(values.data() + first) < least()) continue;
    for (int64_t i = first; i < std::min(first + kColumnsAtOnce, n); ++i)
      if (!(values[i] < least())) offer(i);
  }
}

// weights = e^(scaled - largest), of which the sum is returned.
inline float weigh(const std::vector<float>& scaled, float largest, std::vector<float>& weights) {
  const F top = set(largest);
  F total = zero();
  for (size_t i = 0; i < scaled.size(); i += kLanes) {
    const F weight = exp(sub(load(scaled.data() + i), top));
    store(weights.data() + i, weight);
    total = add(total, weight);
  }
  return sum(total);
}

// The k best of scaled + noise. plain: the k best without it, whose noisy values show how good one has to be.
inline std::vector<Ranked> rank_noisy(const RankScratch& row, const int64_t* vocabulary, int64_t n, const Draw& draw,
                                      const std::vector<Ranked>& plain) {
  float least = std::numeric_limits<float>::infinity();
  for (const auto& [value, token, column] : plain) least = std::min(least, value + gumbel(draw.position, token, draw.seed));
  Best best(plain.size(), least);
  scan_noisy(
      row.scaled.data(), vocabulary, n, draw.position, draw.seed, [&] { return best.floor(); },
      [&](int64_t i, float value) {
        if (!(value < best.floor())) best.offer({value, vocabulary ? vocabulary[i] : i, i});
      });
  return best.sorted();
}

// tokens, probabilities: [k]. vocabulary [n]: the tokens of the columns, or null where they are the columns' numbers.
inline void rank_row(const float* logits, const int64_t* vocabulary, int64_t n, const Draw& draw, int64_t k,
                     RankScratch& row, int64_t* tokens, float* probabilities) {
  scale_logits(logits, n, draw.temperature > 0 ? draw.temperature : 1.0, row.scaled);
  row.weights.resize(row.scaled.size());
  Best plain(k, -std::numeric_limits<float>::infinity());
  scan(
      row.scaled, n, [&] { return plain.floor(); },
      [&](int64_t i) { plain.offer({row.scaled[i], vocabulary ? vocabulary[i] : i, i}); });
  const auto& likeliest = plain.sorted();
  const float total = weigh(row.scaled, likeliest.front().value, row.weights);
  const auto ranked = draw.temperature > 0 ? rank_noisy(row, vocabulary, n, draw, likeliest) : likeliest;
  for (int64_t i = 0; i < k; ++i) {
    tokens[i] = ranked[i].token;
    probabilities[i] = row.weights[ranked[i].column] / total;
  }
}

}  // namespace paceline
