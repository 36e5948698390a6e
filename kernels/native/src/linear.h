// Rows times a packed weight. A row's result is the same whatever rows are beside it: each is accumulated on its own,
// groups in ascending order, and inside a group in exact integers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "activations.h"
#include "simd.h"
#include "weights.h"

namespace paceline {

constexpr size_t kPrefetch = 1280;  // bytes ahead: four groups of q4

template <class Q>
struct UnpackedGroup {
  static constexpr int quads = 8;  // of four inputs
  B w[quads];

  explicit UnpackedGroup(const uint8_t* p) {
    if constexpr (Q::bits == 4) {
      for (int i = 0; i < 4; ++i) {
        const B packed = load_bytes(p + 64 * i);
        w[2 * i] = low_nibbles(packed);
        w[2 * i + 1] = high_nibbles(packed);
      }
    } else {
      for (int i = 0; i < 8; ++i) w[i] = shift_signed(load_bytes(p + 64 * i));
    }
  }

  I dot(const Cell& x) const {
    // Two chains: integers add up the same in any order, and one chain of eight would wait for its own latency.
    I even = start(x.sum), odd = start_nibbles(0);
    for (int i = 0; i < quads; i += 2) {
      even = step(even, w[i], x.quads[i]);
      odd = step(odd, w[i + 1], x.quads[i + 1]);
    }
    return add(even, odd);
  }

 private:
  static I start(int32_t sum_x) {
    if constexpr (Q::bits == 4) return start_nibbles(sum_x);
    else return start_signed(sum_x);
  }
  static I step(I acc, B weight, int32_t x) {
    if constexpr (Q::bits == 4) return dot_nibbles(acc, weight, x);
    else return dot_signed(acc, weight, x);
  }
};

// acc[i] = row r0 + i times the block at p; r0 starts a tile.
template <int Rows, class Q>
inline void multiply(Q, const uint8_t* p, const Activations& x, int64_t r0, F* acc) {
  F total[Rows];
  for (auto& t : total) t = zero();
  const Cell* cell = x.tile(r0);
  const int used = (x.inputs + kGroup - 1) / kGroup;
  for (int first = 0; first < used; first += Q::groups, p += Q::unit_bytes) {
    for (size_t line = 0; line < Q::unit_bytes; line += 64) prefetch(p + kPrefetch + line);
    for (int part = 0; part < Q::groups; ++part, cell += kRowTile) {
      const UnpackedGroup<Q> group(p + part * Q::group_bytes);
      const F scale = load_half(reinterpret_cast<const uint16_t*>(p + Q::scale_at(part)));
      for (int i = 0; i < Rows; ++i)
        total[i] = fma(mul(to_float(group.dot(cell[i])), scale), set(cell[i].scale), total[i]);
      if constexpr (Q::minimum) {
        const F minimum = load_half(reinterpret_cast<const uint16_t*>(p + Q::scale_at(part, 1)));
        for (int i = 0; i < Rows; ++i) total[i] = fma(minimum, set(cell[i].weighted), total[i]);
      }
    }
  }
  for (int i = 0; i < Rows; ++i) acc[i] = total[i];
}

template <int Rows, class T>
inline void multiply(Floating<T>, const uint8_t* p, const Activations& x, int64_t r0, F* acc) {
  const T* weights = reinterpret_cast<const T*>(p);
  const float* rows[Rows];
  // Four chains per row, inputs k mod 4: the order is fixed, and the additions do not wait for each other.
  F total[Rows][4];
  for (int i = 0; i < Rows; ++i) {
    rows[i] = x.row(r0 + i);
    for (auto& chain : total[i]) chain = zero();
  }
  for (int k = 0; k + 4 <= x.inputs; k += 4) {
    for (int j = 0; j < 4; ++j) {
      const F w = load_weights(weights + (k + j) * kLanes);
      for (int i = 0; i < Rows; ++i) total[i][j] = fma(w, set(rows[i][k + j]), total[i][j]);
    }
  }
  for (int k = x.inputs / 4 * 4; k < x.inputs; ++k) {
    const F w = load_weights(weights + k * kLanes);
    for (int i = 0; i < Rows; ++i) total[i][k % 4] = fma(w, set(rows[i][k]), total[i][k % 4]);
  }
  for (int i = 0; i < Rows; ++i) acc[i] = add(add(total[i][0], total[i][1]), add(total[i][2], total[i][3]));
}

template <class Fmt>
constexpr int row_tile() {
  return kRowTile;
}
template <>
constexpr int row_tile<Floating<float>>() { return 4; }
template <>
constexpr int row_tile<Floating<Half>>() { return 4; }
template <>
constexpr int row_tile<Floating<Bfloat>>() { return 4; }

// The same for a number of rows known at run time, at most row_tile<Fmt>().
template <class Fmt>
inline void multiply_rows(Fmt format, int rows, const uint8_t* p, const Activations& x, int64_t r0, F* acc) {
  switch (rows) {
    case 1: return multiply<1>(format, p, x, r0, acc);
    case 2: return multiply<2>(format, p, x, r0, acc);
    case 3: return multiply<3>(format, p, x, r0, acc);
    case 4: return multiply<4>(format, p, x, r0, acc);
    default: break;
  }
  if constexpr (row_tile<Fmt>() == 8) {
    switch (rows) {
      case 5: return multiply<5>(format, p, x, r0, acc);
      case 6: return multiply<6>(format, p, x, r0, acc);
      case 7: return multiply<7>(format, p, x, r0, acc);
      case 8: return multiply<8>(format, p, x, r0, acc);
      default: break;
    }
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

// Blocks [begin, end) of `rows` rows. With `gate` blocks come in pairs, gate and up: [begin, end) counts pairs.
inline void linear_blocks(
    const Weight& w, const Activations& x, int64_t rows, bool gate, const Epilogue& epilogue, int64_t begin, int64_t end) {
  with_format(w.format, [&](auto format) {
    constexpr int tile = row_tile<decltype(format)>();
    F acc[tile], up[tile];
    for (int64_t block = begin; block < end; ++block) {
      for (int64_t r = 0; r < rows; r += tile) {
        const int count = static_cast<int>(std::min<int64_t>(tile, rows - r));
        if (gate) {
          multiply_rows(format, count, w.block(2 * block), x, r, acc);
          multiply_rows(format, count, w.block(2 * block + 1), x, r, up);
          for (int i = 0; i < count; ++i) epilogue.put(r + i, block * kLanes, mul(silu(acc[i]), up[i]));
        } else {
          multiply_rows(format, count, w.block(block), x, r, acc);
          for (int i = 0; i < count; ++i)
            epilogue.put(r + i, block * kLanes, with_bias(w, block * kLanes, acc[i]));
        }
      }
    }
    return 0;
  });
}

}  // namespace paceline
