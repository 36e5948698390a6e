// What a product gives for a block of outputs, and what is done with it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simd.h"
#include "weights.h"

namespace paceline {

// What a block gives for the rows of a tile, [row][half].
struct BlockResult {
  F at[kRowTile][kHalves];
};

inline F silu(F x) { return div(x, add(set(1.0f), exp(min(sub(zero(), x), set(87.0f))))); }

// What is done with a block of results: written to out, with bias and residual added, or gated, or through silu.
struct Epilogue {
  float* out;             // [R, width]
  const float* residual;  // [R, width] or null; may be out itself
  int64_t width;          // outputs, half of the weight's when gated
  bool silu;              // of the result with its bias, before the residual is added

  void put(int64_t row, int64_t column, F value) const {
    const int64_t at = row * width + column;
    const int count = static_cast<int>(std::min<int64_t>(kLanes, width - column));
    if (count == kLanes) {
      store(out + at, residual ? add(value, load(residual + at)) : value);
      return;
    }
    float lanes[kLanes];
    store(lanes, value);
    for (int i = 0; i < count; ++i) out[at + i] = residual ? lanes[i] + residual[at + i] : lanes[i];
  }
};

inline F with_bias(const Weight& w, int64_t column, F value) {
  if (!w.bias) return value;
  float lanes[kLanes] = {};
  std::copy(w.bias + column, w.bias + std::min<int64_t>(column + kLanes, w.outputs), lanes);
  return add(value, load(lanes));
}

// Writes what block `block` gave for rows [r, r + rows).
inline void finish(const Weight& w, bool gate, const Epilogue& epilogue, int64_t block, int64_t r, int64_t rows,
                   const BlockResult& result) {
  for (int64_t i = 0; i < rows; ++i) {
    if (gate) {
      epilogue.put(r + i, block * kLanes, mul(silu(result.at[i][0]), result.at[i][1]));
      continue;
    }
    for (int half = 0; half < kHalves; ++half) {
      const int64_t column = block * kBlock + half * kLanes;
      if (column >= epilogue.width) continue;
      const F value = with_bias(w, column, result.at[i][half]);
      epilogue.put(r + i, column, epilogue.silu ? silu(value) : value);
    }
  }
}

}  // namespace paceline
