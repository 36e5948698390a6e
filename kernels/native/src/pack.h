// Into and out of the packed formats. GGUF's Q4_0, Q4_1 and Q8_0 blocks repack without loss: the same scale, minimum
// and integers in another order. Floating-point rows are rounded to a quantised format here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "half.h"
#include "weights.h"

namespace paceline {

enum class Source : int { q4_0 = 0, q4_1 = 1, q8_0 = 2, f32 = 3, f16 = 4, bf16 = 5 };

inline size_t source_row_bytes(Source source, int inputs) {
  const size_t groups = static_cast<size_t>(inputs) / kGroup;
  switch (source) {
    case Source::q4_0: return groups * 18;
    case Source::q4_1: return groups * 20;
    case Source::q8_0: return groups * 34;
    case Source::f32: return static_cast<size_t>(inputs) * 4;
    case Source::f16:
    case Source::bf16: return static_cast<size_t>(inputs) * 2;
  }
  throw std::invalid_argument("unknown source format");
}

// One output's weights of one group (or of a wide group's part): integers and how to scale them.
struct GroupValues {
  int8_t q[kGroup];  // 0 … 15 or -127 … 127 (-128 where a file has it)
  uint16_t scale, minimum;
};

inline uint16_t read_half(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

inline void read_gguf(Source source, const uint8_t* row, int group, GroupValues& out) {
  if (source == Source::q8_0) {
    const uint8_t* p = row + group * 34;
    out.scale = read_half(p);
    out.minimum = 0;
    std::memcpy(out.q, p + 2, kGroup);
    return;
  }
  const bool with_minimum = source == Source::q4_1;
  const uint8_t* p = row + group * (with_minimum ? 20 : 18);
  out.scale = read_half(p);
  out.minimum = with_minimum ? read_half(p + 2) : float_to_half(-8.0f * half_to_float(out.scale));
  p += with_minimum ? 4 : 2;
  for (int i = 0; i < kGroup / 2; ++i) {
    out.q[i] = static_cast<int8_t>(p[i] & 15);
    out.q[i + kGroup / 2] = static_cast<int8_t>(p[i] >> 4);
  }
}

// Round `count` floats to `bits` bits with one scale (and minimum for 4 bits); q must hold `count`.
inline void round_group(const float* x, int count, int bits, int8_t* q, uint16_t& scale, uint16_t& minimum) {
  const auto [low, high] = std::minmax_element(x, x + count);
  if (bits == 4) {
    minimum = float_to_half(*low);
    const float base = half_to_float(minimum);
    scale = float_to_half(std::max(0.0f, *high - base) / 15.0f);
    const float step = half_to_float(scale);
    for (int i = 0; i < count; ++i)
      q[i] = static_cast<int8_t>(step > 0 ? std::clamp(std::nearbyintf((x[i] - base) / step), 0.0f, 15.0f) : 0.0f);
  } else {
    minimum = 0;
    scale = float_to_half(std::max(std::fabs(*low), std::fabs(*high)) / 127.0f);
    const float step = half_to_float(scale);
    for (int i = 0; i < count; ++i)
      q[i] = static_cast<int8_t>(step > 0 ? std::clamp(std::nearbyintf(x[i] / step), -127.0f, 127.0f) : 0.0f);
  }
}

// Where an output stands in its weight.
struct Place {
  int block, half, lane;
};

template <class Q>
void write_group(uint8_t* unit, int part, Place at, const GroupValues& values) {
  uint8_t* p = unit + part * Q::group_bytes + at.half * Q::half_bytes;
  for (int k = 0; k < kGroup; ++k) {
    const int quad = k / 4, byte = 4 * at.lane + k % 4;
    if constexpr (Q::bits == 4) {
      p[64 * (quad / 2) + byte] |= static_cast<uint8_t>(values.q[k] << (quad % 2 ? 4 : 0));
    } else {
      p[64 * quad + byte] = static_cast<uint8_t>(values.q[k]);
    }
  }
  const size_t column = 2 * (at.half * kLanes + at.lane);
  std::memcpy(unit + Q::scales_at + column, &values.scale, 2);
  if constexpr (Q::minimum) std::memcpy(unit + Q::minimums_at + column, &values.minimum, 2);
}

// One output of a zeroed block, from a GGUF row or from float32.
template <int Bits, int G, bool M>
void pack_row(Quantised<Bits, G, M>, Source source, const uint8_t* row, int inputs, Place at, uint8_t* block) {
  using Q = Quantised<Bits, G, M>;
  const int groups = used_groups(inputs);
  if (source != Source::f32) {
    for (int g = 0; g < groups; ++g) {
      GroupValues values;
      read_gguf(source, row, g, values);
      write_group<Q>(block + g / G * Q::unit_bytes, g % G, at, values);
    }
    return;
  }
  const float* x = reinterpret_cast<const float*>(row);
  for (int first = 0; first < groups; first += G) {
    const int count = std::min(G * kGroup, inputs - first * kGroup);
    int8_t q[G * kGroup] = {};
    GroupValues values;
    round_group(x + first * kGroup, count, Bits, q, values.scale, values.minimum);
    for (int g = first; g < std::min(first + G, groups); ++g) {
      std::memcpy(values.q, q + (g - first) * kGroup, kGroup);
      write_group<Q>(block + g / G * Q::unit_bytes, g % G, at, values);
    }
  }
}

template <class T>
void pack_row(Floating<T>, Source, const uint8_t* row, int inputs, Place at, uint8_t* block) {
  for (int k = 0; k < inputs; ++k)
    std::memcpy(block + (static_cast<size_t>(k) * kBlock + at.half * kLanes + at.lane) * sizeof(T), row + k * sizeof(T),
                sizeof(T));
}

inline bool packs(Format format, Source source) {
  switch (format) {
    case Format::q4: return source == Source::q4_0 || source == Source::q4_1 || source == Source::f32;
    case Format::q8: return source == Source::q8_0 || source == Source::f32;
    case Format::q4_128:
    case Format::q8_128:
    case Format::f32: return source == Source::f32;
    case Format::f16: return source == Source::f16;
    case Format::bf16: return source == Source::bf16;
  }
  return false;
}

// Which part of a weight rows are packed into: all of it, or one half of every block of a gated weight.
enum class Part : int { whole = 0, gates = 1, gated = 2 };

inline Place place(int output, Part part) {
  if (part == Part::whole) return {output / kBlock, output % kBlock / kLanes, output % kLanes};
  return {output / kLanes, part == Part::gated, output % kLanes};
}

// Rows [count, inputs] of a source become outputs first … first + count - 1 of a part of the weight at `out`.
inline void pack_rows(
    Format format, Source source, const uint8_t* rows, int count, int inputs, int first, Part part, uint8_t* out) {
  with_format(format, [&](auto f) {
    const size_t stride = block_bytes(f, inputs), row_bytes = source_row_bytes(source, inputs);
    for (int i = 0; i < count; ++i) {
      const Place at = place(first + i, part);
      pack_row(f, source, rows + i * row_bytes, inputs, at, out + at.block * stride);
    }
    return 0;
  });
}

template <int Bits, int G, bool M>
void read_row(Quantised<Bits, G, M>, const Weight& w, Place at, float* out) {
  using Q = Quantised<Bits, G, M>;
  const size_t column = 2 * (at.half * kLanes + at.lane);
  for (int k = 0; k < w.inputs; ++k) {
    const int g = k / kGroup, quad = k % kGroup / 4;
    const uint8_t* unit = w.block(at.block) + g / G * Q::unit_bytes;
    const uint8_t* p = unit + g % G * Q::group_bytes + at.half * Q::half_bytes + 4 * at.lane + k % 4;
    const float scale = half_to_float(read_half(unit + Q::scales_at + column));
    if constexpr (Bits == 4) {
      const int q = p[64 * (quad / 2)] >> (quad % 2 ? 4 : 0) & 15;
      out[k] = std::fma(scale, static_cast<float>(q), half_to_float(read_half(unit + Q::minimums_at + column)));
    } else {
      out[k] = scale * static_cast<float>(static_cast<int8_t>(p[64 * quad]));
    }
  }
}

template <class T>
void read_row(Floating<T>, const Weight& w, Place at, float* out) {
  const T* block = reinterpret_cast<const T*>(w.block(at.block)) + at.half * kLanes;
  for (int k = 0; k < w.inputs; ++k) {
    float lanes[kLanes];
    store(lanes, load_weights(block + static_cast<size_t>(k) * kBlock));
    out[k] = lanes[at.lane];
  }
}

// Output row `output` of a packed weight as float32 [inputs]: an embedding, or a check.
inline void weight_row(const Weight& w, int output, float* out) {
  with_format(w.format, [&](auto f) {
    read_row(f, w, place(output, Part::whole), out);
    return 0;
  });
}

}  // namespace paceline
