// What a product reads: rows normalised if asked, and for quantised weights rounded to int8 by groups of 32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr int kRowTile = 8;  // rows that share one unpacking of a block

// One group of one row, everything a product needs of it side by side.
struct Cell {
  int32_t quads[kGroup / 4];  // 32 signed bytes, four to a word
  float scale;
  float weighted;  // scale * sum: what the weights' minimum is multiplied by
  int32_t sum;
  int32_t unused;
};

// The rows of one product. Cells lie in tiles of eight rows, [tile][group][row]: a tile fits the first-level cache and
// is read with one pointer.
struct Activations {
  int inputs = 0, groups = 0;
  std::vector<Cell> cells;
  std::vector<float> rows;  // [R][groups * 32] float32, the same rows before rounding

  void reserve(int wanted_rows, int wanted_inputs) {
    inputs = wanted_inputs;
    groups = ((wanted_inputs + kGroup - 1) / kGroup + 3) / 4 * 4;  // units of every format are whole, padding is zero
    const size_t padded_rows = static_cast<size_t>(wanted_rows + kRowTile - 1) / kRowTile * kRowTile;
    if (cells.size() < padded_rows * groups) cells.resize(padded_rows * groups);
    if (rows.size() < padded_rows * groups * kGroup) rows.resize(padded_rows * groups * kGroup);
  }

  // Row r of the tile is cell [g * kRowTile + r % kRowTile].
  Cell* tile(int64_t r) { return cells.data() + r / kRowTile * kRowTile * groups; }
  const Cell* tile(int64_t r) const { return cells.data() + r / kRowTile * kRowTile * groups; }
  float* row(int64_t r) { return rows.data() + r * groups * kGroup; }
  const float* row(int64_t r) const { return rows.data() + r * groups * kGroup; }
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
inline void put_row(Activations& out, int64_t r, const float* x, const float* norm, float eps) {
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

// Round row r to int8: scale = largest magnitude of the group / 127.
inline void quantise_row(Activations& out, int64_t r) {
  const float* row = out.row(r);
  Cell* cell = out.tile(r) + r % kRowTile;
  for (int g = 0; g < out.groups; ++g, row += kGroup, cell += kRowTile) {
    const F a = load(row), b = load(row + kLanes);
    const float largest = max_lane(max(abs(a), abs(b)));
    const F inverse = set(largest > 0.0f ? 127.0f / largest : 0.0f);
    // min: 127 / largest may round up, and 127.5 would round to 128.
    const F ra = min(round_even(mul(a, inverse)), set(127.0f)), rb = min(round_even(mul(b, inverse)), set(127.0f));
    auto* bytes = reinterpret_cast<int8_t*>(cell->quads);
    store_int8(bytes, ra);
    store_int8(bytes + kLanes, rb);
    const float total = sum(add(ra, rb));  // whole numbers far below 2^24: exact in any order
    cell->scale = largest / 127.0f;
    cell->weighted = cell->scale * total;
    cell->sum = static_cast<int32_t>(total);
  }
}

}  // namespace paceline
