// Rows times a packed weight. A row's result is the same whatever rows are beside it: each is accumulated on its own,
// groups in ascending order, and inside a group in exact integers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "activations.h"
#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr size_t kPrefetch = 3456;            // bytes ahead: what memory sends while a few groups are computed
constexpr int64_t kFew = 24;                  // rows that meet a block together
static_assert(kFew % kRowTile == 0, "results are kept by whole tiles");
constexpr size_t kWeightsAtOnce = 384 << 10;  // bytes of weights that stay in the second-level cache between row tiles

// Integer sums of products of one group, for both halves of a block, in 256ths where there are low terms. Rows take a
// vector of weights before the next one is unpacked, and an activation is loaded once for both halves: loads, not
// products, are what there is too little of.
template <class Q, int Rows>
struct GroupDots {
  I sums[Rows][kHalves];

  // low: null where no row has a low term.
  GroupDots(const uint8_t* p, const Cell* cell, const Quads* low) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) sums[i][0] = sums[i][1] = start(cell[i].sums[0]);
    add_term(p, [cell](int i) -> const Quads& { return cell[i].high; });
    if (!low) return;
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
      for (I& sum : sums[i]) sum = add(times_256(sum), start(cell[i].sums[1]));  // stays far below 2^31
    add_term(p, [low](int i) -> const Quads& { return low[i]; });
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

  template <class Term>
  void add_term(const uint8_t* p, Term term) {
#pragma GCC unroll 8
    for (int v = 0; v < Q::vectors; ++v) {
      const B first = load_bytes(p + 64 * v), second = load_bytes(p + Q::half_bytes + 64 * v);
      if constexpr (Q::bits == 4) {
        add_quad(low_nibbles(first), low_nibbles(second), term, 2 * v);
        add_quad(high_nibbles(first), high_nibbles(second), term, 2 * v + 1);
      } else {
        add_quad(shift_signed(first), shift_signed(second), term, v);
      }
    }
  }

  template <class Term>
  void add_quad(B first, B second, Term term, int at) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Quad x = quad(term(i).at[at]);
      sums[i][0] = dot(sums[i][0], first, x);
      sums[i][1] = dot(sums[i][1], second, x);
    }
  }
};

// What a block gives for the rows of a tile, [row][half].
struct BlockResult {
  F at[kRowTile][kHalves];
};

// Adds what the unit of groups from g on, at p, gives for the first Rows rows of the tile of row r0.
template <class Q, int Rows>
[[gnu::always_inline]] inline void add_unit(
    const uint8_t* p, const Activations& x, int64_t r0, int g, BlockResult& result) {
  const uint8_t* fine = x.tile_fine(r0) + g;
  int64_t at = x.tile(r0) + g * kRowTile;
  for (int part = 0; part < Q::groups; ++part, at += kRowTile, ++fine) {
    const Cell* cell = x.cells + at;
    const GroupDots<Q, Rows> dots(p + part * Q::group_bytes, cell, *fine ? x.low + at : nullptr);
    const uint16_t* scales = reinterpret_cast<const uint16_t*>(p + Q::scales_at);
    // A power of two: a row's result is the same bits whether a neighbour brought the low terms in or not.
    const F one = set(*fine ? 1.0f / 256.0f : 1.0f);
    const F scale[kHalves] = {mul(load_half(scales), one), mul(load_half(scales + kLanes), one)};
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const F by = set(cell[i].scale);
      for (int half = 0; half < kHalves; ++half)
        result.at[i][half] = fma(mul(to_float(dots.sums[i][half]), scale[half]), by, result.at[i][half]);
    }
    if constexpr (Q::minimum) {
      const uint16_t* minimums = reinterpret_cast<const uint16_t*>(p + Q::minimums_at);
      const F minimum[kHalves] = {load_half(minimums), load_half(minimums + kLanes)};
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const F by = set(cell[i].weighted);
        for (int half = 0; half < kHalves; ++half) result.at[i][half] = fma(minimum[half], by, result.at[i][half]);
      }
    }
  }
}

template <class Q>
inline void prefetch_unit(const uint8_t* p) {
#pragma GCC unroll 16
  for (size_t line = 0; line < Q::unit_bytes; line += 64) prefetch(p, kPrefetch + line);
}

// Rows r0 … r0 + Rows - 1, of one tile, times the block at p.
template <int Rows, class Q>
inline void multiply_tile(Q, const uint8_t* p, const Activations& x, int64_t r0, BlockResult& out) {
  BlockResult result;  // of our own: what the compiler knows nobody else sees stays in registers
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) result.at[i][0] = result.at[i][1] = zero();
  for (int g = 0; g < used_groups(x.inputs); g += Q::groups, p += Q::unit_bytes) {
    prefetch_unit<Q>(p);
    add_unit<Q, Rows>(p, x, r0, g, result);
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) out.at[i][0] = result.at[i][0], out.at[i][1] = result.at[i][1];
}

// Rows [r0, r0 + rows), whole tiles but for the last, times the block at p; results by tile. Every unit meets all of
// them before the next one: while products are computed, the memory is busy with what comes.
template <class Q>
inline void multiply_tiles(Q, const uint8_t* p, const Activations& x, int64_t r0, int64_t rows, BlockResult* out) {
  BlockResult results[kFew / kRowTile];
  for (int64_t tile = 0; tile < row_tiles(rows); ++tile)
    for (auto& row : results[tile].at) row[0] = row[1] = zero();
  for (int g = 0; g < used_groups(x.inputs); g += Q::groups, p += Q::unit_bytes) {
    prefetch_unit<Q>(p);
    for (int64_t r = 0; r < rows; r += kRowTile)
      by_count<kRowTile>(static_cast<int>(std::min<int64_t>(rows - r, kRowTile)), [&](auto count) {
        add_unit<Q, count>(p, x, r0 + r, g, results[r / kRowTile]);
      });
  }
  std::copy_n(results, row_tiles(rows), out);
}

template <int Rows, class T>
inline void multiply_tile(Floating<T>, const uint8_t* p, const Activations& x, int64_t r0, BlockResult& out) {
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
      const T* outputs = weights + static_cast<int64_t>(k + j) * kBlock;
      const F first = load_weights(outputs), second = load_weights(outputs + kLanes);
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

template <class T>
inline void multiply_tiles(Floating<T> format, const uint8_t* p, const Activations& x, int64_t r0, int64_t rows,
                           BlockResult* out) {
  for (int64_t r = 0; r < rows; r += kRowTile)
    by_count<kRowTile>(static_cast<int>(std::min<int64_t>(rows - r, kRowTile)), [&](auto count) {
      multiply_tile<count>(format, p, x, r0 + r, out[r / kRowTile]);
    });
}

// Rows [r0, r0 + rows), at most kFew, times the block at p; r0 starts a tile.
template <class Fmt>
inline void multiply(Fmt format, const uint8_t* p, const Activations& x, int64_t r0, int64_t rows, BlockResult* out) {
  if (rows > kRowTile) return multiply_tiles(format, p, x, r0, rows, out);
  by_count<kRowTile>(static_cast<int>(rows), [&](auto count) { multiply_tile<count>(format, p, x, r0, *out); });
}

inline F silu(F x) { return div(x, add(set(1.0f), exp(min(sub(zero(), x), set(87.0f))))); }

// What is done with a block of results: written to out, with bias and residual added, or gated.
struct Epilogue {
  float* out;             // [R, width]
  const float* residual;  // [R, width] or null; may be out itself
  int64_t width;          // outputs, half of the weight's when gated

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
      if (column < epilogue.width) epilogue.put(r + i, column, with_bias(w, column, result.at[i][half]));
    }
  }
}

// Blocks [begin, end) of `rows` rows.
//
// A few rows meet each block together, so that it is read once: up to about kFew, memory is the slower side. With more,
// products are: a tile of rows stays in the first-level cache while it meets block after block, and the blocks it meets
// stay in the second-level cache until the last tile has met them.
inline void linear_blocks(const Weight& w, const Activations& x, int64_t rows, bool gate, const Epilogue& epilogue,
                          int64_t begin, int64_t end) {
  const int64_t together = rows <= kFew ? rows : kRowTile;
  const int64_t step = rows <= kFew ? 1 : std::max<int64_t>(1, kWeightsAtOnce / w.stride);
  with_format(w.format, [&](auto format) {
    BlockResult results[kFew / kRowTile];
    for (int64_t first = begin; first < end; first += step) {
      for (int64_t r = 0; r < rows; r += together) {
        const int64_t count = std::min(together, rows - r);
        for (int64_t block = first; block < std::min(first + step, end); ++block) {
          multiply(format, w.block(block), x, r, count, results);
          for (int64_t tile = 0; tile < count; tile += kRowTile)
            finish(w, gate, epilogue, block, r + tile, std::min<int64_t>(count - tile, kRowTile),
                   results[tile / kRowTile]);
        }
      }
    }
    return 0;
  });
}

}  // namespace paceline
