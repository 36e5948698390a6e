// What a product reads: rows normalised if asked, and for quantised weights rounded to 16 bits by groups of 32.
//
// The 16 bits are two terms of 8, value = scale * (256 * high + low) / 256: dot products stay on the 8-bit instructions and
// exact, and the second term buys float quality where one alone moves the model's probabilities by several percent.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr int kTerms = 2;    // high and low byte
constexpr int kRowTile = 6;  // rows that share one unpacking of a block: their sums just fit the registers

// One group of one row, everything a product needs of it side by side.
struct Cell {
  int32_t quads[kTerms][kGroup / 4];  // 32 signed bytes each, four to a word
  float scale;                        // of the whole integer: largest magnitude / 127 / 256
  float weighted;                     // scale * sum of the integers: what the weights' minimum is multiplied by
  int32_t sums[kTerms];
};

// Groups of a row, padded so that units of every format are whole; the padding is zero.
inline int padded_groups(int inputs) { return ((inputs + kGroup - 1) / kGroup + 3) / 4 * 4; }

// The rows of one product, in memory that belongs to an ActivationStorage. Cells lie in tiles, [tile][group][row]: a tile
// fits the first-level cache and is read with one pointer.
struct Activations {
  Cell* cells;
  float* floats;  // [R][groups * 32], the rows before rounding
  int inputs, groups;

  // Row r of the tile is cell [g * kRowTile + r % kRowTile].
  Cell* tile(int64_t r) const { return cells + r / kRowTile * kRowTile * groups; }
  float* row(int64_t r) const { return floats + r * groups * kGroup; }
};

class ActivationStorage {
 public:
  void reserve(int64_t rows, int inputs) {  // before a pass: nothing grows while threads run
    const size_t groups = static_cast<size_t>(padded_groups(inputs));
    const size_t padded_rows = static_cast<size_t>((rows + kRowTile - 1) / kRowTile * kRowTile);
    if (cells_.size() < padded_rows * groups) cells_.resize(padded_rows * groups);
    if (floats_.size() < padded_rows * groups * kGroup) floats_.resize(padded_rows * groups * kGroup);
  }
  Activations rows(int inputs) { return {cells_.data(), floats_.data(), inputs, padded_groups(inputs)}; }

 private:
  std::vector<Cell> cells_;
  std::vector<float> floats_;
};

// 1 / root mean square of x [n], padded with zeros to whole vectors; sums in a fixed order.
inline float inverse_rms(const float* x, int n, float eps) {
  F squares = zero();
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) squares = fma(load(x + i), load(x + i), squares);
  float total = sum(squares);
  for (; i < n; ++i) total += x[i] * x[i];
  return 1.0f / std::sqrt(total / static_cast<float>(n) + eps);
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

// Round row r: the high term to 127 steps of the group's largest magnitude, the low one what is left in 256ths of a step.
inline void quantise_row(const Activations& out, int64_t r) {
  const float* row = out.row(r);
  Cell* cell = out.tile(r) + r % kRowTile;
  const F most = set(127.0f);
  for (int g = 0; g < out.groups; ++g, row += kGroup, cell += kRowTile) {
    const F a = load(row), b = load(row + kLanes);
    const float largest = max_lane(max(abs(a), abs(b)));
    const bool tiny = largest < kTiny;
    const F inverse = set(tiny ? 0.0f : 127.0f / largest);
    const F scaled[] = {mul(a, inverse), mul(b, inverse)};
    auto *high = reinterpret_cast<int8_t*>(cell->quads[0]), *low = reinterpret_cast<int8_t*>(cell->quads[1]);
    F sums[kTerms] = {zero(), zero()};
    for (int half = 0; half < 2; ++half) {
      // min: 127 / largest may round up, and 127.5 would round to 128. Half a step is 128 of its 256ths: one too many
      // for a byte, and -128 one that AVX2 cannot negate.
      const F whole = min(round_even(scaled[half]), most);
      const F rest = max(min(round_even(mul(sub(scaled[half], whole), set(256.0f))), most), set(-127.0f));
      store_int8(high + half * kLanes, whole);
      store_int8(low + half * kLanes, rest);
      sums[0] = add(sums[0], whole);
      sums[1] = add(sums[1], rest);
    }
    // Whole numbers far below 2^24: exact in any order.
    const float total[kTerms] = {sum(sums[0]), sum(sums[1])};
    cell->scale = tiny ? 0.0f : largest / 127.0f / 256.0f;
    cell->weighted = cell->scale * (256.0f * total[0] + total[1]);
    for (int term = 0; term < kTerms; ++term) cell->sums[term] = static_cast<int32_t>(total[term]);
  }
}

}  // namespace paceline
