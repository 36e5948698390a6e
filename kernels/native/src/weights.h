// Packed weights: blocks of 32 output rows in two halves, so that lane l of a vector belongs to output l of its half.
// Two halves share each activation that is loaded; in a gated weight the first half is gates, the second what they gate.
//
// Quantised formats go by groups of 32 inputs. One group of one half:
//   q4: 4 vectors of nibbles; vector i holds inputs 8i … 8i+3 in the low and 8i+4 … 8i+7 in the high nibbles
//   q8: 8 vectors of signed bytes; vector i holds inputs 4i … 4i+3
// (byte 4l + j of a vector belongs to output l and input j of its four). Groups are followed by their scales, and for
// q4 minimums, a half for each output: weight = scale * q + minimum. A unit is the smallest repeating piece; units are
// multiples of 64 bytes, so that vectors never straddle cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "simd.h"

namespace paceline {

constexpr int kGroup = 32;      // inputs that share one activation scale
constexpr int kHalves = 2;      // of a block
constexpr int kBlock = kHalves * kLanes;  // outputs

enum class Format : int { q4 = 0, q4_128 = 1, q8 = 2, q8_128 = 3, f32 = 4, f16 = 5, bf16 = 6 };

template <int Bits, int Groups, bool Minimum>
struct Quantised {
  static constexpr int bits = Bits;
  static constexpr int groups = Groups;  // of 32 inputs, that share a scale: one unit
  static constexpr bool minimum = Minimum;
  static constexpr int vectors = Bits;  // per group and half: 16 * 32 * Bits / 8 / 64
  static constexpr size_t half_bytes = 64 * vectors;
  static constexpr size_t group_bytes = kHalves * half_bytes;
  static constexpr size_t scales_at = Groups * group_bytes;
  static constexpr size_t minimums_at = scales_at + 2 * kBlock;
  static constexpr size_t unit_bytes = scales_at + 2 * kBlock * (Minimum ? 2 : 1);
};

using Q4 = Quantised<4, 1, true>;
using Q4Wide = Quantised<4, 4, true>;
using Q8 = Quantised<8, 1, false>;
using Q8Wide = Quantised<8, 4, false>;

template <class T>
struct Floating {  // [inputs][32]
  static constexpr size_t row_bytes = sizeof(T) * kBlock;
};
struct Half { uint16_t bits; };
struct Bfloat { uint16_t bits; };
inline F load_weights(const float* p) { return load(p); }
inline F load_weights(const Half* p) { return load_half(&p->bits); }
inline F load_weights(const Bfloat* p) { return load_bfloat(&p->bits); }

// Calls fn with the traits of a format: one switch for every kernel.
template <class Fn>
auto with_format(Format format, Fn&& fn) {
  switch (format) {
    case Format::q4: return fn(Q4{});
    case Format::q4_128: return fn(Q4Wide{});
    case Format::q8: return fn(Q8{});
    case Format::q8_128: return fn(Q8Wide{});
    case Format::f32: return fn(Floating<float>{});
    case Format::f16: return fn(Floating<Half>{});
    case Format::bf16: return fn(Floating<Bfloat>{});
  }
  throw std::invalid_argument("unknown weight format " + std::to_string(static_cast<int>(format)));
}

inline int used_groups(int inputs) { return (inputs + kGroup - 1) / kGroup; }

template <int Bits, int G, bool M>
size_t block_bytes(Quantised<Bits, G, M>, int inputs) {
  return static_cast<size_t>((used_groups(inputs) + G - 1) / G) * Quantised<Bits, G, M>::unit_bytes;
}
template <class T>
size_t block_bytes(Floating<T>, int inputs) {
  return static_cast<size_t>(inputs) * Floating<T>::row_bytes;
}

// A packed weight [outputs, inputs]; the memory belongs to the caller.
struct Weight {
  Format format;
  int outputs, inputs;
  const uint8_t* data;
  const float* bias;  // [outputs] or null
  size_t stride;      // bytes of a block

  Weight(Format format, int outputs, int inputs, const uint8_t* data, const float* bias)
      : format(format),
        outputs(outputs),
        inputs(inputs),
        data(data),
        bias(bias),
        stride(with_format(format, [&](auto f) { return block_bytes(f, inputs); })) {}

  int blocks() const { return (outputs + kBlock - 1) / kBlock; }
  bool quantised() const { return format <= Format::q8_128; }
  const uint8_t* block(int64_t index) const { return data + index * stride; }
};

}  // namespace paceline
