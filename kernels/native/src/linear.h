// Rows times a packed weight. A row's result is the same whatever rows are beside it: each is accumulated on its own,
// groups in ascending order, and inside a group in exact integers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "activations.h"
#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr size_t kPrefetch = 1280;          // bytes ahead: four groups of q4
constexpr size_t kWeightsAtOnce = 384 << 10;  // bytes of weights that stay in the second-level cache between row tiles

// Integer sums of products of one group, for both halves of a block. Rows take a vector of weights before the next one is
// unpacked, and an activation is loaded once for both halves: loads, not products, are what there is too little of.
template <class Q, int Rows>
struct GroupDots {
  I sums[Rows][kHalves];

  GroupDots(const uint8_t* p, const Cell* cell) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) sums[i][0] = sums[i][1] = start(cell[i].sums[0]);
    add_term<0>(p, cell);
    // The low term adds to 256 times the high one in the same registers; both stay far below 2^31.
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
      for (I& sum : sums[i]) sum = add(times_256(sum), start(cell[i].sums[1]));
    add_term<1>(p, cell);
  }

 private:
  static I start(int32_t sum_x) {
    if constexpr (Q::bits == 4) return start_nibbles(sum_x);
    else return start_signed(sum_x);
  }

  static I dot(I sum, B weights, Quad x) {
    if constexpr (Q::bits == 4) return dot_nibbles(sum, weights, x);
    else return dot_signed(sum, weights, x);
  }

  template <int Term>
  void add_term(const uint8_t* p, const Cell* cell) {
#pragma GCC unroll 8
    for (int v = 0; v < Q::vectors; ++v) {
      const B first = load_bytes(p + 64 * v), second = load_bytes(p + Q::half_bytes + 64 * v);
      if constexpr (Q::bits == 4) {
        add_quad<Term>(low_nibbles(first), low_nibbles(second), cell, 2 * v);
        add_quad<Term>(high_nibbles(first), high_nibbles(second), cell, 2 * v + 1);
      } else {
        add_quad<Term>(shift_signed(first), shift_signed(second), cell, v);
      }
    }
  }

  template <int Term>
  void add_quad(B first, B second, const Cell* cell, int at) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Quad x = quad(cell[i].quads[Term][at]);
      sums[i][0] = dot(sums[i][0], first, x);
      sums[i][1] = dot(sums[i][1], second, x);
    }
  }
};

// What a block gives for some rows, [row][half].
struct BlockResult {
  F at[kRowTile][kHalves];
};

// Rows r0 … r0 + Rows - 1 times the block at p; r0 starts a tile.
template <int Rows, class Q>
inline void multiply(Q, const uint8_t* p, const Activations& x, int64_t r0, BlockResult& out) {
  F total[Rows][kHalves];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) total[i][0] = total[i][1] = zero();
  const Cell* cell = x.tile(r0);
  const int used = (x.inputs + kGroup - 1) / kGroup;
  for (int first = 0; first < used; first += Q::groups, p += Q::unit_bytes) {
#pragma GCC unroll 16
    for (size_t line = 0; line < Q::unit_bytes / Q::groups; line += 64) prefetch(p + kPrefetch + line);
    for (int part = 0; part < Q::groups; ++part, cell += kRowTile) {
      const GroupDots<Q, Rows> dots(p + part * Q::group_bytes, cell);
      const uint16_t* scales = reinterpret_cast<const uint16_t*>(p + Q::scales_at);
      const F scale[kHalves] = {load_half(scales), load_half(scales + kLanes)};
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const F by = set(cell[i].scale);
        total[i][0] = fma(mul(to_float(dots.sums[i][0]), scale[0]), by, total[i][0]);
        total[i][1] = fma(mul(to_float(dots.sums[i][1]), scale[1]), by, total[i][1]);
      }
      if constexpr (Q::minimum) {
        const uint16_t* minimums = reinterpret_cast<const uint16_t*>(p + Q::minimums_at);
        const F minimum[kHalves] = {load_half(minimums), load_half(minimums + kLanes)};
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
          const F by = set(cell[i].weighted);
          total[i][0] = fma(minimum[0], by, total[i][0]);
          total[i][1] = fma(minimum[1], by, total[i][1]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) out.at[i][0] = total[i][0], out.at[i][1] = total[i][1];
}

template <int Rows, class T>
inline void multiply(Floating<T>, const uint8_t* p, const Activations& x, int64_t r0, BlockResult& out) {
  const T* weights = reinterpret_cast<const T*>(p);
  const float* rows[Rows];
  // Two chains per row and half, even and odd inputs: the order is fixed, and additions wait less for each other.
  F total[Rows][kHalves][2];
  for (int i = 0; i < Rows; ++i) {
    rows[i] = x.row(r0 + i);
    for (auto& half : total[i]) half[0] = half[1] = zero();
  }
  for (int k = 0; k < x.inputs; k += 2) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      if (k + j == x.inputs) break;
      const F first = load_weights(weights + (k + j) * kBlock), second = load_weights(weights + (k + j) * kBlock + kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const F by = set(rows[i][k + j]);
        total[i][0][j] = fma(first, by, total[i][0][j]);
        total[i][1][j] = fma(second, by, total[i][1][j]);
      }
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int half = 0; half < kHalves; ++half) out.at[i][half] = add(total[i][half][0], total[i][half][1]);
}

// The same for a number of rows known at run time, at most kRowTile.
template <class Fmt>
inline void multiply_rows(Fmt format, int rows, const uint8_t* p, const Activations& x, int64_t r0, BlockResult& out) {
  switch (rows) {
    case 1: return multiply<1>(format, p, x, r0, out);
    case 2: return multiply<2>(format, p, x, r0, out);
    case 3: return multiply<3>(format, p, x, r0, out);
    case 4: return multiply<4>(format, p, x, r0, out);
    case 5: return multiply<5>(format, p, x, r0, out);
    default: return multiply<6>(format, p, x, r0, out);
  }
}

inline F silu(F x) { return div(x, add(set(1.0f), exp(min(sub(zero(), x), set(87.0f))))); }

// What is done with a block of results: written to out, with bias and residual added, or gated.
struct Epilogue {
  float* out;         // [R, width]
  const float* residual;  // [R, width] or null; may be out itself
  int64_t width;      // outputs, half of the weight's when gated

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

// Blocks [begin, end) of `rows` rows.
//
// A tile of rows stays in the first-level cache while it meets block after block, and the blocks it meets stay in the
// second-level cache until the last tile has met them.
inline void linear_blocks(
    const Weight& w, const Activations& x, int64_t rows, bool gate, const Epilogue& epilogue, int64_t begin, int64_t end) {
  const int64_t step = std::max<int64_t>(1, kWeightsAtOnce / w.stride);
  with_format(w.format, [&](auto format) {
    BlockResult result;
    for (int64_t first = begin; first < end; first += step) {
      for (int64_t r = 0; r < rows; r += kRowTile) {
        const int count = static_cast<int>(std::min<int64_t>(kRowTile, rows - r));
        for (int64_t block = first; block < std::min(first + step, end); ++block) {
          multiply_rows(format, count, w.block(block), x, r, result);
          for (int i = 0; i < count; ++i) {
            if (gate) {
              epilogue.put(r + i, block * kLanes, mul(silu(result.at[i][0]), result.at[i][1]));
              continue;
            }
            for (int half = 0; half < kHalves; ++half) {
              const int64_t column = block * kBlock + half * kLanes;
              if (column < epilogue.width) epilogue.put(r + i, column, with_bias(w, column, result.at[i][half]));
            }
          }
        }
      }
    }
    return 0;
  });
}

}  // namespace paceline
