// Plain C++: sixteen lanes are an array, which compilers turn into whatever vectors the machine has.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "half.h"

namespace paceline {

constexpr int kRowTile = 4;  // rows that share one unpacking of weights
constexpr int kQueryTile = 6, kTileVectors = 2;  // queries and vectors of each whose sums fit the registers

struct F { float v[kLanes]; };
struct I { int32_t v[kLanes]; };
struct B { uint8_t v[4 * kLanes]; };

template <class T, class Fn>
inline T lanes(Fn&& fn) {
  T out;
  for (int i = 0; i < kLanes; ++i) out.v[i] = fn(i);
  return out;
}

inline F set(float x) { return lanes<F>([&](int) { return x; }); }
inline F zero() { return set(0.0f); }
inline F load(const float* p) { return lanes<F>([&](int i) { return p[i]; }); }
inline void store(float* p, const F& x) { std::memcpy(p, x.v, sizeof x.v); }
inline F add(const F& a, const F& b) { return lanes<F>([&](int i) { return a.v[i] + b.v[i]; }); }
inline F sub(const F& a, const F& b) { return lanes<F>([&](int i) { return a.v[i] - b.v[i]; }); }
inline F mul(const F& a, const F& b) { return lanes<F>([&](int i) { return a.v[i] * b.v[i]; }); }
inline F div(const F& a, const F& b) { return lanes<F>([&](int i) { return a.v[i] / b.v[i]; }); }
// Fused where the machine fuses for free, in two roundings elsewhere; always the same on one machine.
inline F fma(const F& a, const F& b, const F& c) {
#if defined(__FMA__) || defined(__aarch64__)
  return lanes<F>([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
#else
  return add(mul(a, b), c);
#endif
}
// The second where one is NaN: what x86 does.
inline F max(const F& a, const F& b) { return lanes<F>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
inline F min(const F& a, const F& b) { return lanes<F>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; }); }
inline F abs(const F& a) { return lanes<F>([&](int i) { return std::fabs(a.v[i]); }); }
inline float sum(F a) {
  for (int width = kLanes / 2; width; width /= 2)
    for (int i = 0; i < width; ++i) a.v[i] += a.v[i + width];
  return a.v[0];
}
inline float max_lane(const F& a) { return *std::max_element(a.v, a.v + kLanes); }
// out[i] = the largest lane of x[i], the sum of its lanes.
inline void max_lanes(const F (&x)[4], float* out) {
  for (int i = 0; i < 4; ++i) out[i] = max_lane(x[i]);
}
inline void sum_lanes(const F (&x)[4], float* out) {
  for (int i = 0; i < 4; ++i) out[i] = sum(x[i]);
}
// Which lanes of a exceed those of b, a bit each.
inline unsigned lanes_above(const F& a, const F& b) {
  unsigned bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<unsigned>(a.v[i] > b.v[i]) << i;
  return bits;
}
inline F first_lanes(const F& a, int count, const F& other) {
  return lanes<F>([&](int i) { return i < count ? a.v[i] : other.v[i]; });
}
inline F round_even(const F& a) { return lanes<F>([&](int i) { return std::nearbyintf(a.v[i]); }); }
inline F scale_by_power(const F& a, const F& n) {  // n within the exponents of normal numbers
  return lanes<F>([&](int i) {
    const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(n.v[i]) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return a.v[i] * power;
  });
}
inline F load_half(const uint16_t* p) { return lanes<F>([&](int i) { return half_to_float(p[i]); }); }
inline void store_half(uint16_t* p, const F& x) {
  for (int i = 0; i < kLanes; ++i) p[i] = float_to_half(x.v[i]);
}
inline F load_bfloat(const uint16_t* p) {
  return lanes<F>([&](int i) {
    const uint32_t bits = static_cast<uint32_t>(p[i]) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  });
}
inline F load_int8(const int8_t* p) { return lanes<F>([&](int i) { return static_cast<float>(p[i]); }); }
inline void store_int8(int8_t* p, const F& rounded) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(rounded.v[i]);
}
inline F to_float(const I& a) { return lanes<F>([&](int i) { return static_cast<float>(a.v[i]); }); }

// Lanes as unsigned words.
inline I set_word(uint32_t x) { return lanes<I>([&](int) { return static_cast<int32_t>(x); }); }
inline I load_words(const uint32_t* p) { return lanes<I>([&](int i) { return static_cast<int32_t>(p[i]); }); }
inline void store_words(uint32_t* p, const I& a) { std::memcpy(p, a.v, sizeof a.v); }
inline I bit_xor(const I& a, const I& b) { return lanes<I>([&](int i) { return a.v[i] ^ b.v[i]; }); }
// The high and the low word of each lane times `by`.
inline void wide_product(const I& a, uint32_t by, I& high, I& low) {
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t product = uint64_t{static_cast<uint32_t>(a.v[i])} * by;
    high.v[i] = static_cast<int32_t>(product >> 32), low.v[i] = static_cast<int32_t>(product);
  }
}

inline B load_bytes(const uint8_t* p) {
  B out;
  std::memcpy(out.v, p, sizeof out.v);
  return out;
}
inline B low_nibbles(B a) {
  for (auto& byte : a.v) byte &= 15;
  return a;
}
inline B high_nibbles(B a) {
  for (auto& byte : a.v) byte >>= 4;
  return a;
}
// Each lane's nibble i or signed byte i, of its four bytes.
inline F nibble(const B& a, int i) {
  return lanes<F>([&](int l) { return static_cast<float>(a.v[4 * l + i / 2] >> i % 2 * 4 & 15); });
}
inline F signed_byte(const B& a, int i) {
  return lanes<F>([&](int l) { return static_cast<float>(static_cast<int8_t>(a.v[4 * l + i])); });
}
using Quad = int32_t;
inline Quad quad(int32_t x) { return x; }
template <class Byte>
inline I dot_bytes(const I& acc, const B& w, Quad x) {
  int8_t s[4];
  std::memcpy(s, &x, sizeof s);
  return lanes<I>([&](int i) {
    int32_t total = acc.v[i];
    for (int j = 0; j < 4; ++j) total += static_cast<Byte>(w.v[4 * i + j]) * s[j];
    return total;
  });
}
inline I dot_nibbles(const I& acc, const B& w, Quad x) { return dot_bytes<uint8_t>(acc, w, x); }
inline I dot_signed(const I& acc, const B& w, Quad x) { return dot_bytes<int8_t>(acc, w, x); }
inline I start_nibbles(int32_t) { return lanes<I>([](int) { return 0; }); }
inline I start_signed(int32_t) { return start_nibbles(0); }
inline B shift_signed(const B& w) { return w; }
inline void prefetch(const void* p) { __builtin_prefetch(p); }
inline void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1); }
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace paceline
