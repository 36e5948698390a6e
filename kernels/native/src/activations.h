// What a product reads: rows normalised if asked, and for quantised weights rounded to int8 by groups of 32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "simd.h"
#include "weights.h"

namespace paceline {

// Rows of int8 with one scale per group, and each group's sum: what the weights' minimum is multiplied by.
struct Activations {
  int inputs = 0, groups = 0, capacity = 0;
  std::vector<int8_t> values;    // [R][groups * 32]
  std::vector<float> scales;     // [R][groups]
  std::vector<float> weighted;   // [R][groups]: scale * sum
  std::vector<int32_t> sums;     // [R][groups]
  std::vector<float> rows;       // [R][padded inputs] float32, the same rows before rounding

  void reserve(int wanted_rows, int wanted_inputs) {
    inputs = wanted_inputs;
    // An even number of groups of four: units of every format are whole, the padding is zero.
    groups = (wanted_inputs + kGroup - 1) / kGroup;
    const size_t padded = static_cast<size_t>((groups + 3) / 4 * 4);
    groups = static_cast<int>(padded);
    capacity = std::max(capacity, wanted_rows);
    const size_t n = static_cast<size_t>(capacity) * padded;
    if (scales.size() < n) {
      values.resize(n * kGroup);
      scales.resize(n);
      weighted.resize(n);
      sums.resize(n);
      rows.resize(n * kGroup);
    }
  }

  const int8_t* value_row(int64_t r) const { return values.data() + r * groups * kGroup; }
  const float* scale_row(int64_t r) const { return scales.data() + r * groups; }
  const float* weighted_row(int64_t r) const { return weighted.data() + r * groups; }
  const int32_t* sum_row(int64_t r) const { return sums.data() + r * groups; }
  float* float_row(int64_t r) { return rows.data() + r * groups * kGroup; }
  const float* float_row(int64_t r) const { return rows.data() + r * groups * kGroup; }
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
  float* row = out.float_row(r);
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
  const float* row = out.float_row(r);
  int8_t* values = out.values.data() + r * out.groups * kGroup;
  for (int g = 0; g < out.groups; ++g, row += kGroup, values += kGroup) {
    const F a = load(row), b = load(row + kLanes);
    const float largest = max_lane(max(abs(a), abs(b)));
    const float scale = largest / 127.0f;
    const F inverse = set(largest > 0.0f ? 127.0f / largest : 0.0f);
    // min: 127 / largest may round up, and 127.5 would round to 128.
    const F ra = min(round_even(mul(a, inverse)), set(127.0f)), rb = min(round_even(mul(b, inverse)), set(127.0f));
    store_int8(values, ra);
    store_int8(values + kLanes, rb);
    const float total = sum(add(ra, rb));  // whole numbers far below 2^24: exact in any order
    const int64_t at = r * out.groups + g;
    out.scales[at] = scale;
    out.weighted[at] = scale * total;
    out.sums[at] = static_cast<int32_t>(total);
  }
}

}  // namespace paceline
