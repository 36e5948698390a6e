// AVX2 with FMA and F16C: sixteen lanes are two registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "half.h"

namespace paceline {

constexpr int kRowTile = 3;  // rows whose sums fit the registers, four vectors each
constexpr int kQueryTile = 6, kTileVectors = 1;  // queries and vectors of each whose sums fit the registers

struct F { __m256 a, b; };
struct I { __m256i a, b; };
using B = I;

inline F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline F set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
inline F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline F abs(F x) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
}
inline float sum(F x) {
  const __m256 half = _mm256_add_ps(x.a, x.b);
  __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
}
inline float max_lane(F x) {
  const __m256 half = _mm256_max_ps(x.a, x.b);
  __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  quarter = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
}
// out[i] = the largest lane of x[i], the sum of its lanes.
inline void max_lanes(const F (&x)[4], float* out) {
  for (int i = 0; i < 4; ++i) out[i] = max_lane(x[i]);
}
inline void sum_lanes(const F (&x)[4], float* out) {
  for (int i = 0; i < 4; ++i) out[i] = sum(x[i]);
}
// Which lanes of x exceed those of y, a bit each.
inline unsigned lanes_above(F x, F y) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ))) |
         static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ))) << 8;
}
inline F first_lanes(F x, int count, F other) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i low = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index);
  const __m256i high = _mm256_cmpgt_epi32(_mm256_set1_epi32(count - 8), index);
  return {_mm256_blendv_ps(other.a, x.a, _mm256_castsi256_ps(low)),
          _mm256_blendv_ps(other.b, x.b, _mm256_castsi256_ps(high))};
}
inline F round_even(F x) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
inline __m256 scale_by_power(__m256 x, __m256 n) {  // n within the exponents of normal numbers
  return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(
                              _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23)));
}
inline F scale_by_power(F x, F n) { return {scale_by_power(x.a, n.a), scale_by_power(x.b, n.b)}; }
inline F load_half(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline void store_half(uint16_t* p, F x) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, mode));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, mode));
}
inline __m256 bfloat(const uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline F load_bfloat(const uint16_t* p) { return {bfloat(p), bfloat(p + 8)}; }
inline __m256 bytes_to_float(const int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline F load_int8(const int8_t* p) { return {bytes_to_float(p), bytes_to_float(p + 8)}; }
inline void store_int8(int8_t* p, F rounded) {
  alignas(32) int32_t wide[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(wide), _mm256_cvtps_epi32(rounded.a));
  _mm256_store_si256(reinterpret_cast<__m256i*>(wide + 8), _mm256_cvtps_epi32(rounded.b));
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(wide[i]);
}
inline F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }

// Lanes as unsigned words.
inline I set_word(uint32_t x) {
  const __m256i all = _mm256_set1_epi32(static_cast<int32_t>(x));
  return {all, all};
}
inline I load_words(const uint32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
inline void store_words(uint32_t* p, I x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a), _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.b);
}
inline I bit_xor(I x, I y) { return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)}; }
inline void wide_product(__m256i x, uint32_t by, __m256i& high, __m256i& low) {
  const __m256i factor = _mm256_set1_epi32(static_cast<int32_t>(by));
  const __m256i even = _mm256_mul_epu32(x, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
inline void wide_product(I x, uint32_t by, I& high, I& low) {
  wide_product(x.a, by, high.a, low.a), wide_product(x.b, by, high.b, low.b);
}

inline B load_bytes(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
inline B low_nibbles(B x) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
}
inline B high_nibbles(B x) { return low_nibbles({_mm256_srli_epi16(x.a, 4), _mm256_srli_epi16(x.b, 4)}); }
// Each lane's nibble i or signed byte i, of its four bytes.
inline F nibble(B x, int i) {
  const __m128i by = _mm_cvtsi32_si128(4 * i);
  const __m256i mask = _mm256_set1_epi32(15);
  return to_float({_mm256_and_si256(_mm256_srl_epi32(x.a, by), mask), _mm256_and_si256(_mm256_srl_epi32(x.b, by), mask)});
}
inline F signed_byte(B x, int i) {
  const __m128i by = _mm_cvtsi32_si128(24 - 8 * i);
  return to_float({_mm256_srai_epi32(_mm256_sll_epi32(x.a, by), 24), _mm256_srai_epi32(_mm256_sll_epi32(x.b, by), 24)});
}
inline __m256i dot4(__m256i acc, __m256i u, __m256i s) {  // pairs stay below 2^15: |u| <= 128, |s| <= 127
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
}
using Quad = __m256i;
inline Quad quad(int32_t x) { return _mm256_set1_epi32(x); }
inline I dot_nibbles(I acc, B w, Quad x) { return {dot4(acc.a, w.a, x), dot4(acc.b, w.b, x)}; }
inline I start_nibbles(int32_t) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline I start_signed(int32_t) { return start_nibbles(0); }
inline B shift_signed(B w) { return w; }
inline __m256i dot4_signed(__m256i acc, __m256i w, __m256i s) {
  return dot4(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(s, w));
}
inline I dot_signed(I acc, B w, Quad x) { return {dot4_signed(acc.a, w.a, x), dot4_signed(acc.b, w.b, x)}; }
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
// The line is going to be written: other cores give it up now and not at the first store. A no-op where it is unknown.
inline void prefetch_to_write(const void* p) { asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p))); }
inline void pause() { _mm_pause(); }

}  // namespace paceline
