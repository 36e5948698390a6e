// Rows times a packed weight. A row's result is the same whatever rows are beside it: each is accumulated on its own,
// high terms before low ones or outliers, groups in ascending order, and inside a group in exact integers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "activations.h"
#include "epilogue.h"
#include "pool.h"
#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr size_t kPrefetch = 3456;            // bytes ahead: what memory sends while a few groups are computed
constexpr int64_t kFew = 24;                  // rows that meet a block together
static_assert(kFew % kRowTile == 0, "results are kept by whole tiles");
constexpr size_t kWeightsAtOnce = 384 << 10;  // bytes of weights that stay in the second-level cache between row tiles

template <class Q>
inline I start_dots(int32_t sum_x) {
  if constexpr (Q::bits == 4) return start_nibbles(sum_x);
  else return start_signed(sum_x);
}

template <class Q>
inline I dot(I sum, B weights, Quad x) {
  if constexpr (Q::bits == 4) return dot_nibbles(sum, weights, x);
  else return dot_signed(sum, weights, x);
}

// Vector i of a half's group at p: inputs 4i … 4i + 3.
template <class Q>
inline B unpack_weights(const uint8_t* p, int i) {
  if constexpr (Q::bits == 8) return shift_signed(load_bytes(p + 64 * i));
  else if (i % 2 == 0) return low_nibbles(load_bytes(p + 32 * i));
  else return high_nibbles(load_bytes(p + 32 * (i - 1)));
}

// Adds what the high terms of the first Rows rows of the tile of row r0 give with the unit of groups from g on, at p. Rows
// take a vector of weights before the next one is unpacked, and an activation is loaded once for both halves, because
// loads, not products, are what there is too little of.
template <class Q, int Rows>
[[gnu::always_inline]] inline void add_unit(
    const uint8_t* p, const Activations& x, int64_t r0, int g, BlockResult& result) {
  const Cell* cell = x.cells + x.tile(r0) + int64_t{g} * kRowTile;
  const uint16_t* scales = reinterpret_cast<const uint16_t*>(p + Q::scales_at);
  const F scale[kHalves] = {load_half(scales), load_half(scales + kLanes)};
  for (int part = 0; part < Q::groups; ++part, cell += kRowTile) {
    const uint8_t* group = p + part * Q::group_bytes;
    I sums[Rows][kHalves];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) sums[r][0] = sums[r][1] = start_dots<Q>(cell[r].sums[0]);
#pragma GCC unroll 8
    for (int i = 0; i < kQuads; ++i) {
      const B first = unpack_weights<Q>(group, i), second = unpack_weights<Q>(group + Q::half_bytes, i);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const Quad quads = quad(cell[r].high.at[i]);
        sums[r][0] = dot<Q>(sums[r][0], first, quads);
        sums[r][1] = dot<Q>(sums[r][1], second, quads);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const F by = set(cell[r].scale);
      for (int half = 0; half < kHalves; ++half)
        result.at[r][half] = fma(mul(to_float(sums[r][half]), scale[half]), by, result.at[r][half]);
    }
    if constexpr (Q::minimum) {
      const uint16_t* minimums = reinterpret_cast<const uint16_t*>(p + Q::minimums_at);
      const F minimum[kHalves] = {load_half(minimums), load_half(minimums + kLanes)};
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const F by = set(cell[r].weighted);
        for (int half = 0; half < kHalves; ++half) result.at[r][half] = fma(minimum[half], by, result.at[r][half]);
      }
    }
  }
}

// Adds the low terms of the first `rows` rows of the tile of row r0 to what their high terms gave with the block at p.
template <class Q>
[[gnu::noinline]] void add_low(const uint8_t* p, const Activations& x, int64_t r0, int64_t rows, BlockResult& result) {
  for (int g = 0; g < used_groups(x.inputs); ++g) {
    const uint8_t *unit = p + g / Q::groups * Q::unit_bytes, *group = unit + g % Q::groups * Q::group_bytes;
    const uint16_t* scales = reinterpret_cast<const uint16_t*>(unit + Q::scales_at);
    const F scale[kHalves] = {load_half(scales), load_half(scales + kLanes)};
    B weights[kQuads][kHalves];
#pragma GCC unroll 8
    for (int i = 0; i < kQuads; ++i)
      for (int half = 0; half < kHalves; ++half) weights[i][half] = unpack_weights<Q>(group + half * Q::half_bytes, i);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = x.tile(r0) + int64_t{g} * kRowTile + r;
      I sums[kHalves] = {start_dots<Q>(x.cells[at].sums[1]), start_dots<Q>(x.cells[at].sums[1])};
#pragma GCC unroll 8
      for (int i = 0; i < kQuads; ++i) {
        const Quad quads = quad(x.low[at].at[i]);
        for (int half = 0; half < kHalves; ++half) sums[half] = dot<Q>(sums[half], weights[i][half], quads);
      }
      const F by = set(x.cells[at].scale * (1.0f / 256.0f));
      for (int half = 0; half < kHalves; ++half)
        result.at[r][half] = fma(mul(to_float(sums[half]), scale[half]), by, result.at[r][half]);
    }
  }
}

// The weights of input j of a half's group at p, but for their scale and minimum.
template <class Q>
inline F weight_column(const uint8_t* p, int j) {
  if constexpr (Q::bits == 8) return signed_byte(load_bytes(p + 64 * (j / 4)), j % 4);
  else return nibble(load_bytes(p + 64 * (j / 8)), j % 4 * 2 + j / 4 % 2);
}

// Adds the outliers of row r to what the rounded values gave with the block at p.
template <class Q>
inline void add_outliers(const uint8_t* p, const Activations& x, int64_t r, F (&result)[kHalves]) {
  const Outlier *outlier = x.outliers + r * x.most, *end = outlier + x.counts[r];
  for (; outlier != end; ++outlier) {
    const int g = outlier->input / kGroup, j = outlier->input % kGroup;
    const uint8_t *unit = p + g / Q::groups * Q::unit_bytes, *group = unit + g % Q::groups * Q::group_bytes;
    const uint16_t* scales = reinterpret_cast<const uint16_t*>(unit + Q::scales_at);
    const F by = set(outlier->value);
    for (int half = 0; half < kHalves; ++half)
      result[half] = fma(mul(weight_column<Q>(group + half * Q::half_bytes, j), load_half(scales + half * kLanes)), by,
                         result[half]);
  }
}

// Adds what is beside the high terms of the first `rows` rows of the tile of row r0.
template <class Q>
[[gnu::noinline]] void add_rest(const uint8_t* p, const Activations& x, int64_t r0, int64_t rows, BlockResult& result) {
  if (x.two_terms) return add_low<Q>(p, x, r0, rows, result);
  for (int64_t r = 0; r < rows; ++r) add_outliers<Q>(p, x, r0 + r, result.at[r]);
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
  const uint8_t* unit = p;
  for (int g = 0; g < used_groups(x.inputs); g += Q::groups, unit += Q::unit_bytes) {
    prefetch_unit<Q>(unit);
    add_unit<Q, Rows>(unit, x, r0, g, result);
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) out.at[i][0] = result.at[i][0], out.at[i][1] = result.at[i][1];
  add_rest<Q>(p, x, r0, Rows, out);
}

// Rows [r0, r0 + rows), whole tiles but for the last, times the block at p; results by tile. Every unit meets all of
// them before the next one: while products are computed, the memory is busy with what comes.
template <class Q>
inline void multiply_tiles(Q, const uint8_t* p, const Activations& x, int64_t r0, int64_t rows, BlockResult* out) {
  BlockResult results[kFew / kRowTile];
  for (int64_t tile = 0; tile < row_tiles(rows); ++tile)
    for (auto& row : results[tile].at) row[0] = row[1] = zero();
  const uint8_t* unit = p;
  for (int g = 0; g < used_groups(x.inputs); g += Q::groups, unit += Q::unit_bytes) {
    prefetch_unit<Q>(unit);
    for (int64_t r = 0; r < rows; r += kRowTile)
      by_count<kRowTile>(static_cast<int>(std::min<int64_t>(rows - r, kRowTile)), [&](auto count) {
        add_unit<Q, count>(unit, x, r0 + r, g, results[r / kRowTile]);
      });
  }
  for (int64_t tile = 0; tile < row_tiles(rows); ++tile) {
    out[tile] = results[tile];
    add_rest<Q>(p, x, r0 + tile * kRowTile, std::min<int64_t>(kRowTile, rows - tile * kRowTile), out[tile]);
  }
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

// This thread's part of the product of `rows` rows; `work` holds the weight's blocks.
//
// A few rows meet each block together, so that it is read once: up to about kFew, memory is the slower side. With more,
// products are: a tile of rows stays in the first-level cache while it meets block after block, and the blocks it meets
// stay in the second-level cache until the last tile has met them.
inline void linear_blocks(const Weight& w, const Activations& x, int64_t rows, bool gate, const Epilogue& epilogue,
                          SharedWork& work, int thread) {
  const int64_t together = rows <= kFew ? rows : kRowTile;
  const int64_t most = rows <= kFew ? 1 : std::max<int64_t>(1, kWeightsAtOnce / w.stride);
  with_format(w.format, [&](auto format) {
    BlockResult results[kFew / kRowTile];
    for (auto blocks = work.take(thread, most); !blocks.none(); blocks = work.take(thread, most)) {
      for (int64_t r = 0; r < rows; r += together) {
        const int64_t count = std::min(together, rows - r);
        for (int64_t block = blocks.begin; block < blocks.end; ++block) {
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
