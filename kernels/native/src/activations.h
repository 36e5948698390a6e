// What a product reads: rows normalised if asked, and for quantised weights rounded by groups of 32 to one term of 8
// bits, or to two where one is coarse for its row: value = scale * (high + low / 256).
//
// Dot products stay on the 8-bit instructions and exact. What one term loses grows with the largest value of its group,
// and a few groups hold a row's outliers: a second term there buys nearly all that 16 bits everywhere would.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr int kTerms = 2;  // high and low byte

// A group gets its second term if a value of it exceeds this many times the root mean square of its row.
// Infinity: none, zero: all.
struct Precision {
  float outlier;
};

constexpr int kQuads = kGroup / 4;

struct Quads {
  int32_t at[kQuads];  // 32 signed bytes, four to a word
};
static_assert(kRowTile <= 8, "a byte has a bit for each row of a tile");

// One group of one row, everything a product needs of it side by side.
struct Cell {
  Quads high;
  float scale;     // of the high term: largest magnitude / 127
  float weighted;  // sum of the rounded values: what the weights' minimum is multiplied by
  int32_t sums[kTerms];
};

// Groups of a row, padded so that units of every format are whole; the padding is zero.
inline int padded_groups(int inputs) { return (used_groups(inputs) + 3) / 4 * 4; }

// The rows of one product, in memory that belongs to an ActivationStorage. Cells lie in tiles, [tile][group][row]: a
// tile fits the first-level cache and is read with one pointer.
struct Activations {
  Cell* cells;
  Quads* low;     // beside each cell; only there where `fine` says so
  uint8_t* fine;  // [tile][group]: the rows of the tile that have a second term here, a bit each
  float* floats;  // [R][groups * 32], the rows before rounding
  int inputs, groups;

  // Row r of the tile is cell [g * kRowTile + r % kRowTile].
  int64_t tile(int64_t r) const { return r / kRowTile * kRowTile * groups; }
  uint8_t* tile_fine(int64_t r) const { return fine + r / kRowTile * groups; }
  float* row(int64_t r) const { return floats + r * groups * kGroup; }
};

inline int64_t row_tiles(int64_t rows) { return (rows + kRowTile - 1) / kRowTile; }

class ActivationStorage {
 public:
  void reserve(int64_t rows, int inputs) {  // before a pass: nothing grows while threads run
    const size_t groups = static_cast<size_t>(padded_groups(inputs));
    const size_t tiles = static_cast<size_t>(row_tiles(rows)), padded_rows = tiles * kRowTile;
    if (cells_.size() < padded_rows * groups) {
      cells_.resize(padded_rows * groups);
      low_.resize(padded_rows * groups);
    }
    if (fine_.size() < tiles * groups) fine_.resize(tiles * groups);
    if (floats_.size() < padded_rows * groups * kGroup) floats_.resize(padded_rows * groups * kGroup);
  }
  Activations rows(int inputs) {
    return {cells_.data(), low_.data(), fine_.data(), floats_.data(), inputs, padded_groups(inputs)};
  }

 private:
  std::vector<Cell> cells_;
  std::vector<Quads> low_;
  std::vector<uint8_t> fine_;
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

constexpr float kTiny = 1e-30f;   // a group below this is zero: 127 / largest would overflow
constexpr int kGroupsAtOnce = 4;  // so that horizontal sums and maxima share their shuffles

// Round four groups of a row, with two terms where a square exceeds `outlier`: the high term to 127 steps of the group's
// largest magnitude, the low one what is left in 256ths of a step.
inline void quantise_groups(const float* row, Cell* cell, Quads* lows, uint8_t* fine, int bit, float outlier) {
  F magnitudes[kGroupsAtOnce];
  for (int g = 0; g < kGroupsAtOnce; ++g)
    magnitudes[g] = max(abs(load(row + g * kGroup)), abs(load(row + g * kGroup + kLanes)));
  float largest[kGroupsAtOnce], inverse[kGroupsAtOnce];
  max_lanes(magnitudes, largest);
  for (int g = 0; g < kGroupsAtOnce; ++g) inverse[g] = largest[g] < kTiny ? 0.0f : 127.0f / largest[g];
  const F most = set(127.0f);
  F sums[kTerms][kGroupsAtOnce];  // whole numbers far below 2^24: exact in any order
  for (int g = 0; g < kGroupsAtOnce; ++g) {
    auto* high = reinterpret_cast<int8_t*>(&cell[g * kRowTile].high);
    auto* low = reinterpret_cast<int8_t*>(&lows[g * kRowTile]);
    const F a = mul(load(row + g * kGroup), set(inverse[g])), b = mul(load(row + g * kGroup + kLanes), set(inverse[g]));
    // min: 127 / largest may round up, and 127.5 would round to 128.
    const F whole_a = min(round_even(a), most), whole_b = min(round_even(b), most);
    store_int8(high, whole_a);
    store_int8(high + kLanes, whole_b);
    sums[0][g] = add(whole_a, whole_b);
    const bool two = largest[g] * largest[g] > outlier;
    fine[g] |= static_cast<uint8_t>(two << bit);
    if (two) {
      // Half a step is 128 of its 256ths: one too many for a byte, and -128 one that AVX2 cannot negate.
      const auto rest = [&](F x, F whole) {
        return max(min(round_even(mul(sub(x, whole), set(256.0f))), most), set(-127.0f));
      };
      const F rest_a = rest(a, whole_a), rest_b = rest(b, whole_b);
      store_int8(low, rest_a);
      store_int8(low + kLanes, rest_b);
      sums[1][g] = add(rest_a, rest_b);
    } else {
      sums[1][g] = zero();
    }
  }
  float total[kTerms][kGroupsAtOnce];
  for (int term = 0; term < kTerms; ++term) sum_lanes(sums[term], total[term]);
  for (int g = 0; g < kGroupsAtOnce; ++g) {
    Cell& c = cell[g * kRowTile];
    c.scale = inverse[g] == 0.0f ? 0.0f : largest[g] * (1.0f / 127.0f);
    c.weighted = c.scale * (total[0][g] + total[1][g] * (1.0f / 256.0f));
    for (int term = 0; term < kTerms; ++term) c.sums[term] = static_cast<int32_t>(total[term][g]);
  }
}

// Round row r, whose values are at `row` [groups * 32].
inline void quantise_row(const Activations& out, int64_t r, const float* row, Precision precision) {
  const float mean_square = sum_of_squares(row, out.inputs) / static_cast<float>(out.inputs);
  const float outlier = precision.outlier * precision.outlier * mean_square;
  const int bit = static_cast<int>(r % kRowTile);
  const int64_t first = out.tile(r) + bit;
  for (int g = 0; g < out.groups; g += kGroupsAtOnce) {
    const int64_t at = first + g * kRowTile;
    quantise_groups(row + g * kGroup, out.cells + at, out.low + at, out.tile_fine(r) + g, bit, outlier);
  }
}

}  // namespace paceline
