// What a product reads: rows normalised if asked, and for quantised weights rounded to 8 bits by groups of 32, each with
// a scale of its own: value = scale * high. A row's few outliers stay floats and are multiplied apart; or every group has
// a second term of 8 bits: value = scale * (high + low / 256).
//
// Dot products stay on the 8-bit instructions and exact. What rounding loses grows with the largest value of a group, so
// taking one value in some hundred out of it buys most of what 16 bits everywhere would.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr int kTerms = 2;  // high and low byte

// A value is an outlier that exceeds this many times the root mean square of its row. Infinity: none is. Zero: none is,
// and every group has two terms.
struct Precision {
  float outlier;

  bool two_terms() const { return outlier == 0.0f; }
  // Outliers of a row of so many values, at most: n / k² values can exceed k times the root of their mean square.
  int most_outliers(int inputs) const {
    if (two_terms()) return 0;
    return static_cast<int>(std::min(static_cast<float>(inputs), static_cast<float>(inputs) / (outlier * outlier)));
  }
};

constexpr int kQuads = kGroup / 4;

struct Quads {
  int32_t at[kQuads];  // 32 signed bytes, four to a word
};

struct Outlier {
  int32_t input;
  float value;
};

// One group of one row, everything a product needs of it side by side.
struct Cell {
  Quads high;
  float scale;     // of the high term: largest magnitude / 127
  float weighted;  // sum of the rounded values and outliers: what the weights' minimum is multiplied by
  int32_t sums[kTerms];
};

// Groups of a row, padded so that units of every format are whole; the padding is zero.
inline int padded_groups(int inputs) { return (used_groups(inputs) + 3) / 4 * 4; }

// The rows of one product, in memory that belongs to an ActivationStorage. Cells lie in tiles, [tile][group][row]: a
// tile fits the first-level cache and is read with one pointer.
struct Activations {
  Cell* cells;
  Quads* low;         // beside each cell; only there with two terms
  Outlier* outliers;  // [R][most], ascending in a row
  int32_t* counts;    // [R], of outliers
  float* floats;      // [R][groups * 32], the rows before rounding
  int inputs, groups, most;
  bool two_terms;

  // Row r of the tile is cell [g * kRowTile + r % kRowTile].
  int64_t tile(int64_t r) const { return r / kRowTile * kRowTile * groups; }
  float* row(int64_t r) const { return floats + r * groups * kGroup; }
};

inline int64_t row_tiles(int64_t rows) { return (rows + kRowTile - 1) / kRowTile; }

class ActivationStorage {
 public:
  void reserve(int64_t rows, int inputs, Precision precision) {  // before a pass: nothing grows while threads run
    const size_t groups = static_cast<size_t>(padded_groups(inputs));
    const size_t padded_rows = static_cast<size_t>(row_tiles(rows)) * kRowTile;
    grow(cells_, padded_rows * groups);
    if (precision.two_terms()) grow(low_, padded_rows * groups);
    grow(outliers_, padded_rows * precision.most_outliers(inputs));
    grow(counts_, padded_rows);
    grow(floats_, padded_rows * groups * kGroup);
  }
  Activations rows(int inputs, Precision precision) {
    return {cells_.data(),         low_.data(), outliers_.data(), counts_.data(), floats_.data(), inputs,
            padded_groups(inputs), precision.most_outliers(inputs), precision.two_terms()};
  }

 private:
  template <class T>
  static void grow(std::vector<T>& memory, size_t size) {
    if (memory.size() < size) memory.resize(size);
  }

  std::vector<Cell> cells_;
  std::vector<Quads> low_;
  std::vector<Outlier> outliers_;
  std::vector<int32_t> counts_;
  std::vector<float> floats_;
};

// The sum of squares of x [n]; additions in a fixed order, in chains that do not wait for each other.
inline float sum_of_squares(const float* x, int n) {
  F a = zero(), b = zero(), c = zero(), d = zero();
  int i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = fma(load(x + i), load(x + i), a);
    b = fma(load(x + i + kLanes), load(x + i + kLanes), b);
    c = fma(load(x + i + 2 * kLanes), load(x + i + 2 * kLanes), c);
    d = fma(load(x + i + 3 * kLanes), load(x + i + 3 * kLanes), d);
  }
  for (; i + kLanes <= n; i += kLanes) a = fma(load(x + i), load(x + i), a);
  float total = sum(add(add(a, b), add(c, d)));
  for (; i < n; ++i) total += x[i] * x[i];
  return total;
}

inline float inverse_rms(const float* x, int n, float eps) {
  return 1.0f / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps);
}

// Row x [inputs] into row r of `out`, multiplied by norm / rms(x) when `norm` [inputs] is given.
inline void put_row(const Activations& out, int64_t r, const float* x, const float* norm, float eps) {
  float* row = out.row(r);
  const int n = out.inputs, padded = out.groups * kGroup;
  if (norm) {
    const float factor = inverse_rms(x, n, eps);
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) store(row + i, mul(mul(load(x + i), set(factor)), load(norm + i)));
    for (; i < n; ++i) row[i] = x[i] * factor * norm[i];
  } else {
    std::copy(x, x + n, row);
  }
  std::fill(row + n, row + padded, 0.0f);
}

constexpr float kTiny = 1e-30f;  // a group below this is zero: 127 / largest would overflow
constexpr float kLeastSquare = 1e-37f;  // a row whose squares are smaller has lost their digits, and has no outliers
constexpr int kGroupsAtOnce = 16;  // whose scales are one vector: a division for all of them
static_assert(kGroupsAtOnce == kLanes, "a group to a lane");

// The largest magnitude of each of `count` groups of a row; the rest of `largest` is zero.
inline void largest_of_groups(const float* row, int count, float* largest) {
  store(largest, zero());
  for (int g = 0; g < count; g += 4) {  // horizontal maxima share their shuffles
    F magnitudes[4];
    for (int i = 0; i < 4; ++i) {
      const float* group = row + std::min(g + i, count - 1) * kGroup;
      magnitudes[i] = max(abs(load(group)), abs(load(group + kLanes)));
    }
    float four[4];
    max_lanes(magnitudes, four);
    std::copy_n(four, std::min(4, count - g), largest + g);
  }
}

// Moves a group's values above `limit` to the end of row r's outliers, its others to `rest` with zeros between. Returns
// what was moved, in all; a group whose outliers have no room keeps them.
inline float take_outliers(const Activations& out, int64_t r, int input, const float* group, float limit, float* rest) {
  const F border = set(limit);
  unsigned taken = 0;
  for (int i = 0; i < kGroup; i += kLanes)
    taken |= lanes_above(abs(load(group + i)), border) << i;
  int32_t& count = out.counts[r];
  std::copy_n(group, kGroup, rest);
  if (count + __builtin_popcount(taken) > out.most) return 0.0f;
  float total = 0.0f;
  for (; taken; taken &= taken - 1) {
    const int i = __builtin_ctz(taken);
    out.outliers[r * out.most + count++] = {input + i, group[i]};
    total += group[i];
    rest[i] = 0.0f;
  }
  return total;
}

// Rounds a group, divided by its scale, to the high term and where it is wanted the low one. Returns sums by lanes.
template <bool Two>
inline void round_group(const float* group, float inverse, Quads& high, Quads* low, F (&sums)[kTerms]) {
  const F by = set(inverse), most = set(127.0f);
  auto* high_bytes = reinterpret_cast<int8_t*>(&high);
  F whole[2], scaled[2];
  for (int i = 0; i < 2; ++i) {
    scaled[i] = mul(load(group + i * kLanes), by);
    // min: 127 / largest may round up, and 127.5 would round to 128.
    whole[i] = min(round_even(scaled[i]), most);
    store_int8(high_bytes + i * kLanes, whole[i]);
  }
  sums[0] = add(whole[0], whole[1]);
  if constexpr (Two) {
    auto* low_bytes = reinterpret_cast<int8_t*>(low);
    F rest[2];
    for (int i = 0; i < 2; ++i) {
      // Half a step is 128 of its 256ths: one too many for a byte, and -128 one that AVX2 cannot negate.
      rest[i] = max(min(round_even(mul(sub(scaled[i], whole[i]), set(256.0f))), most), set(-127.0f));
      store_int8(low_bytes + i * kLanes, rest[i]);
    }
    sums[1] = add(rest[0], rest[1]);
  } else {
    sums[1] = zero();
  }
}

// Rounds groups [first, first + count) of row r, whose values are at `row`. limit: what is above it is an outlier.
template <bool Two>
inline void round_groups(const Activations& out, int64_t r, int first, int count, const float* row, float limit) {
  float largest[kGroupsAtOnce], inverse[kGroupsAtOnce], scale[kGroupsAtOnce], apart[kGroupsAtOnce] = {};
  float rests[kGroupsAtOnce][kGroup];
  const float* groups[kGroupsAtOnce];
  largest_of_groups(row, count, largest);
  for (int g = 0; g < count; ++g) {
    groups[g] = row + g * kGroup;
    if (Two || !(largest[g] > limit)) continue;
    apart[g] = take_outliers(out, r, (first + g) * kGroup, groups[g], limit, rests[g]);
    groups[g] = rests[g];
    largest[g] = max_lane(max(abs(load(rests[g])), abs(load(rests[g] + kLanes))));
  }
  for (int g = 0; g < kGroupsAtOnce; ++g) {
    inverse[g] = largest[g] < kTiny ? 0.0f : 127.0f / largest[g];
    scale[g] = inverse[g] == 0.0f ? 0.0f : largest[g] * (1.0f / 127.0f);
  }
  const int64_t cell = out.tile(r) + r % kRowTile + int64_t{first} * kRowTile;
  for (int g = 0; g < count; g += 4) {
    F sums[kTerms][4];  // whole numbers far below 2^24: exact in any order
    for (int i = 0; i < 4; ++i) {
      F of_group[kTerms] = {zero(), zero()};
      if (const int64_t at = cell + (g + i) * kRowTile; g + i < count)
        round_group<Two>(groups[g + i], inverse[g + i], out.cells[at].high, Two ? out.low + at : nullptr, of_group);
      for (int term = 0; term < kTerms; ++term) sums[term][i] = of_group[term];
    }
    float total[kTerms][4] = {};
    for (int term = 0; term < (Two ? kTerms : 1); ++term) sum_lanes(sums[term], total[term]);
    for (int i = 0; i < std::min(4, count - g); ++i) {
      Cell& c = out.cells[cell + (g + i) * kRowTile];
      c.scale = scale[g + i];
      c.weighted = c.scale * (total[0][i] + total[1][i] * (1.0f / 256.0f)) + apart[g + i];
      for (int term = 0; term < kTerms; ++term) c.sums[term] = static_cast<int32_t>(total[term][i]);
    }
  }
}

// Rounds row r, whose values are at `row` [inputs, up to a whole group].
inline void quantise_row(const Activations& out, int64_t r, const float* row, Precision precision) {
  const int used = used_groups(out.inputs);
  const float mean_square = sum_of_squares(row, out.inputs) / static_cast<float>(out.inputs);
  const float limit = mean_square < kLeastSquare ? std::numeric_limits<float>::infinity()
                                                 : precision.outlier * std::sqrt(mean_square);
  out.counts[r] = 0;
  for (int g = 0; g < used; g += kGroupsAtOnce) {
    const int count = std::min(kGroupsAtOnce, used - g);
    if (out.two_terms) round_groups<true>(out, r, g, count, row + g * kGroup, limit);
    else round_groups<false>(out, r, g, count, row + g * kGroup, limit);
  }
  for (int g = used; g < out.groups; ++g) {
    const int64_t at = out.tile(r) + r % kRowTile + int64_t{g} * kRowTile;
    out.cells[at] = {};
    if (out.two_terms) out.low[at] = {};
  }
}

}  // namespace paceline
