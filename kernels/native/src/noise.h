// The noise that tokens are chosen with: a function of (seed, position, token), the same wherever it is computed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "simd.h"

namespace paceline {

// Philox4x32-10 (Salmon et al., SC'11): counter (position, quad), key = the seed.
inline std::array<uint32_t, 4> philox(uint64_t position, uint64_t quad, uint64_t seed) {
  uint32_t x0 = static_cast<uint32_t>(position), x1 = static_cast<uint32_t>(position >> 32);
  uint32_t x2 = static_cast<uint32_t>(quad), x3 = static_cast<uint32_t>(quad >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * x0, p1 = uint64_t{0xCD9E8D57u} * x2;
    const uint32_t y0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0, y2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x1 = static_cast<uint32_t>(p1), x3 = static_cast<uint32_t>(p0), x0 = y0, x2 = y2;
  }
  return {x0, x1, x2, x3};
}

inline double uniform(uint32_t word) { return (static_cast<double>(word >> 8) + 0.5) / 16777216.0; }
inline float gumbel_of(double u) { return static_cast<float>(-std::log(-std::log(u))); }

inline float gumbel(uint64_t position, int64_t token, uint64_t seed) {
  return gumbel_of(uniform(philox(position, static_cast<uint64_t>(token) / 4, seed)[token % 4]));
}

// No noise exceeds 17.33: a token further than that below another one cannot win.
constexpr float kNoiseCeiling = 17.4f;
constexpr int64_t kColumnsAtOnce = 4 * kLanes;  // looked at together: most hold nothing that ranks

inline float largest_of(const float* x) {
  return max_lane(max(max(load(x), load(x + kLanes)), max(load(x + 2 * kLanes), load(x + 3 * kLanes))));
}

// philox of a quad in each lane, given as its two halves: words[w][lane].
inline void philox_lanes(uint64_t position, const uint32_t* low, const uint32_t* high, uint64_t seed,
                         uint32_t (*words)[kLanes]) {
  I x0 = set_word(static_cast<uint32_t>(position)), x1 = set_word(static_cast<uint32_t>(position >> 32));
  I x2 = load_words(low), x3 = load_words(high);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    I high0, low0, high1, low1;
    wide_product(x0, 0xD2511F53u, high0, low0);
    wide_product(x2, 0xCD9E8D57u, high1, low1);
    x0 = bit_xor(bit_xor(high1, x1), set_word(k0));
    x2 = bit_xor(bit_xor(high0, x3), set_word(k1));
    x1 = low1;
    x3 = low0;
  }
  store_words(words[0], x0);
  store_words(words[1], x1);
  store_words(words[2], x2);
  store_words(words[3], x3);
}

// The random words of kColumnsAtOnce columns from `first` on; those of columns past n are anything.
inline void column_words(const int64_t* vocabulary, int64_t first, int64_t n, uint64_t position, uint64_t seed,
                         uint32_t* out) {
  uint32_t low[kLanes], high[kLanes], words[4][kLanes];
  if (!vocabulary) {  // neighbours share a quad
    for (int q = 0; q < kLanes; ++q) {
      const uint64_t quad = static_cast<uint64_t>(first) / 4 + q;
      low[q] = static_cast<uint32_t>(quad), high[q] = static_cast<uint32_t>(quad >> 32);
    }
    philox_lanes(position, low, high, seed, words);
    for (int q = 0; q < kLanes; ++q)
      for (int w = 0; w < 4; ++w) out[4 * q + w] = words[w][q];
    return;
  }
  for (int64_t begin = 0; begin < kColumnsAtOnce; begin += kLanes) {
    uint8_t word[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const auto token = static_cast<uint64_t>(vocabulary[std::min(first + begin + i, n - 1)]);
      low[i] = static_cast<uint32_t>(token / 4), high[i] = static_cast<uint32_t>(token / 4 >> 32), word[i] = token % 4;
    }
    philox_lanes(position, low, high, seed, words);
    for (int i = 0; i < kLanes; ++i) out[begin + i] = words[word[i]][i];
  }
}

// Offers (column, scaled + g) of every column where that reaches floor(), which may rise meanwhile, and of some others.
// scaled: padded with negative infinity to a multiple of kColumnsAtOnce. vocabulary: as in `rank`.
//
// A value reaches `floor` only if g >= floor - scaled, so if 1 - u <= 1 - exp(-e^-(floor - scaled)), so only if
// 1 - u <= e^(scaled - floor). Logarithms are left for the few that pass, and no noise exceeds kNoiseCeiling, so that most
// columns of a peaked row need none at all.
template <class Floor, class Offer>
inline void scan_noisy(const float* scaled, const int64_t* vocabulary, int64_t n, uint64_t position, uint64_t seed,
                       Floor&& floor, Offer&& offer) {
  uint32_t words[kColumnsAtOnce];
  float bounds[kColumnsAtOnce];
  for (int64_t first = 0; first < n; first += kColumnsAtOnce) {
    const float* piece = scaled + first;
    const float least = floor(), largest = largest_of(piece);
    if (largest < least - kNoiseCeiling) continue;
    column_words(vocabulary, first, n, position, seed, words);
    if (std::isfinite(least) && std::isfinite(largest)) {
      // What sums and exponents are rounded by, twice over.
      const float slack = 1e-3f + (std::fabs(largest) + std::fabs(least)) * 0x1p-21f;
      const F shift = set(slack - least), most = set(88.0f);
      for (int64_t i = 0; i < kColumnsAtOnce; i += kLanes)
        store(bounds + i, mul(exp(min(add(load(piece + i), shift), most)), set(0x1p24f)));
    } else {
      std::fill(bounds, bounds + kColumnsAtOnce, 0x1p25f);
    }
    bool any = false;
    for (int64_t i = 0; i < kColumnsAtOnce; ++i)
      any |= static_cast<float>(static_cast<int32_t>(0xffffff - (words[i] >> 8))) <= bounds[i];
    if (!any) continue;
    for (int64_t i = 0; i < std::min(kColumnsAtOnce, n - first); ++i)
      if (static_cast<float>(static_cast<int32_t>(0xffffff - (words[i] >> 8))) <= bounds[i])
        offer(first + i, piece[i] + gumbel_of(uniform(words[i])));
  }
}

}  // namespace paceline
