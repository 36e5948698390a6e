// AVX-512 with VNNI: sixteen lanes are one register.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace paceline {

constexpr int kRowTile = 8;  // rows whose sums fit the registers, two vectors each
constexpr int kQueryTile = 12, kTileVectors = 2;  // queries and vectors of each whose sums fit the registers

using F = __m512;
using I = __m512i;
using B = __m512i;

inline F zero() { return _mm512_setzero_ps(); }
inline F set(float x) { return _mm512_set1_ps(x); }
inline F load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, F x) { _mm512_storeu_ps(p, x); }
inline F add(F a, F b) { return _mm512_add_ps(a, b); }
inline F sub(F a, F b) { return _mm512_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm512_mul_ps(a, b); }
inline F div(F a, F b) { return _mm512_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
inline F max(F a, F b) { return _mm512_max_ps(a, b); }
inline F min(F a, F b) { return _mm512_min_ps(a, b); }
inline F abs(F a) { return _mm512_abs_ps(a); }
inline float sum(F a) { return _mm512_reduce_add_ps(a); }
inline float max_lane(F a) { return _mm512_reduce_max_ps(a); }
// out[i] = fold(all lanes of x[i]), for a fold that may take them in any order. Four together need half the shuffles.
template <class Fold>
inline void fold_lanes(const F (&x)[4], float* out, Fold fold) {
  const F a = fold(_mm512_shuffle_f32x4(x[0], x[1], 0x44), _mm512_shuffle_f32x4(x[0], x[1], 0xee));
  const F b = fold(_mm512_shuffle_f32x4(x[2], x[3], 0x44), _mm512_shuffle_f32x4(x[2], x[3], 0xee));
  F quarters = fold(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));  // x[i] in lanes 4i … 4i + 3
  quarters = fold(quarters, _mm512_permute_ps(quarters, 0xb1));
  quarters = fold(quarters, _mm512_permute_ps(quarters, 0x4e));
  _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, quarters)));
}
inline void max_lanes(const F (&x)[4], float* out) { fold_lanes(x, out, [](F a, F b) { return max(a, b); }); }
inline void sum_lanes(const F (&x)[4], float* out) { fold_lanes(x, out, [](F a, F b) { return add(a, b); }); }
// Which lanes of a exceed those of b, a bit each.
inline unsigned lanes_above(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline F first_lanes(F a, int count, F other) { return _mm512_mask_mov_ps(other, (1u << count) - 1u, a); }
inline F round_even(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline F scale_by_power(F a, F n) { return _mm512_scalef_ps(a, n); }
inline F load_half(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void store_half(uint16_t* p, F x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline F load_bfloat(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
inline F load_int8(const int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline void store_int8(int8_t* p, F rounded) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(rounded)));
}
inline F to_float(I a) { return _mm512_cvtepi32_ps(a); }

// Lanes as unsigned words.
inline I set_word(uint32_t x) { return _mm512_set1_epi32(static_cast<int32_t>(x)); }
inline I load_words(const uint32_t* p) { return _mm512_loadu_si512(p); }
inline void store_words(uint32_t* p, I a) { _mm512_storeu_si512(p, a); }
inline I bit_xor(I a, I b) { return _mm512_xor_si512(a, b); }
inline void wide_product(I a, uint32_t by, I& high, I& low) {
  const __m512i factor = set_word(by);
  const __m512i even = _mm512_mul_epu32(a, factor), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
  low = _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
  high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
}

inline B load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline B low_nibbles(B a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
inline B high_nibbles(B a) { return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15)); }
// Each lane's nibble i or signed byte i, of its four bytes.
inline F nibble(B a, int i) {
  return to_float(_mm512_and_si512(_mm512_srl_epi32(a, _mm_cvtsi32_si128(4 * i)), _mm512_set1_epi32(15)));
}
inline F signed_byte(B a, int i) {
  return to_float(_mm512_srai_epi32(_mm512_sll_epi32(a, _mm_cvtsi32_si128(24 - 8 * i)), 24));
}
// dot_*: lane l of the result is acc[l] + the four products of w's bytes of lane l with x's four signed bytes.
using Quad = __m512i;
inline Quad quad(int32_t x) { return _mm512_set1_epi32(x); }
inline I dot_nibbles(I acc, B w, Quad x) { return _mm512_dpbusd_epi32(acc, w, x); }
// The instruction wants unsigned weights: they are shifted by 128, and what that adds is taken off at the start.
inline I start_nibbles(int32_t) { return _mm512_setzero_si512(); }
inline I start_signed(int32_t sum_x) { return _mm512_set1_epi32(-128 * sum_x); }
inline B shift_signed(B w) { return _mm512_xor_si512(w, _mm512_set1_epi8(static_cast<char>(0x80))); }
inline I dot_signed(I acc, B w, Quad x) { return _mm512_dpbusd_epi32(acc, w, x); }
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
// The line is going to be written: other cores give it up now and not at the first store. A no-op where it is unknown.
inline void prefetch_to_write(const void* p) { asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p))); }
inline void pause() { _mm_pause(); }

}  // namespace paceline
