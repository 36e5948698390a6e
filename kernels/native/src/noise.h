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

// The random words of kColumnsAtOnce columns.
class ColumnWords {
 public:
  // Of columns from `first` on; returns the highest word, or a higher one of a neighbour.
  uint32_t draw(const int64_t* vocabulary, int64_t first, int64_t n, uint64_t position, uint64_t seed) {
    tokens_ = vocabulary ? vocabulary + first : nullptr;
    if (tokens_ && n - first < kColumnsAtOnce) {  // whole pieces are read without a look at where they end
      std::copy(tokens_, vocabulary + n, last_);
      tokens_ = last_;
    }
    uint32_t low[kLanes], high[kLanes], highest[kLanes] = {};
    for (int g = 0; g < (tokens_ ? 4 : 1); ++g) {
      for (int i = 0; i < kLanes; ++i) {  // without a vocabulary four neighbours share a quad
        const auto quad = static_cast<uint64_t>(tokens_ ? tokens_[g * kLanes + i] : first + 4 * i) / 4;
        low[i] = static_cast<uint32_t>(quad), high[i] = static_cast<uint32_t>(quad >> 32);
      }
      philox_lanes(position, low, high, seed, words_[g]);
      for (const auto& words : words_[g])
        for (int i = 0; i < kLanes; ++i) highest[i] = std::max(highest[i], words[i]);
    }
    return *std::max_element(highest, highest + kLanes);
  }
  uint32_t of(int64_t column) const {  // counted from `first`
    return tokens_ ? words_[column / kLanes][tokens_[column] % 4][column % kLanes] : words_[0][column % 4][column / 4];
  }

 private:
  const int64_t* tokens_ = nullptr;
  int64_t last_[kColumnsAtOnce] = {};
  uint32_t words_[4][4][kLanes];
};

// Offers (column, scaled + g) of every column where that reaches floor(), which may rise meanwhile, and of some others.
// scaled: padded with negative infinity to a multiple of kColumnsAtOnce. vocabulary: as in `rank`.
//
// A value reaches `floor` only if g >= floor - scaled, so if 1 - u <= 1 - exp(-e^-(floor - scaled)), so only if
// 1 - u <= e^(scaled - floor). Of most columns together the least 1 - u is too large for the likeliest of them, and no
// noise exceeds kNoiseCeiling, so that many need none at all.
template <class Floor, class Offer>
inline void scan_noisy(const float* scaled, const int64_t* vocabulary, int64_t n, uint64_t position, uint64_t seed,
                       Floor&& floor, Offer&& offer) {
  ColumnWords words;
  const auto rest = [](uint32_t word) { return static_cast<float>(0xffffff - (word >> 8)); };  // <= 2^24 (1 - u)
  for (int64_t first = 0; first < n; first += kColumnsAtOnce) {
    const float* piece = scaled + first;
    const float least = floor(), largest = largest_of(piece);
    if (largest < least - kNoiseCeiling) continue;
    const uint32_t highest = words.draw(vocabulary, first, n, position, seed);
    const bool bounded = std::isfinite(least) && std::isfinite(largest);
    // What sums and exponents are rounded by, twice over.
    const float slack = 1e-3f + (std::fabs(largest) + std::fabs(least)) * 0x1p-21f;
    const auto bound = [&](float value) { return 0x1p24f * std::exp(std::min(value - least + slack, 64.0f)); };
    const float most = bounded ? bound(largest) : 0x1p25f;
    if (rest(highest) > most) continue;
    for (int64_t i = 0; i < std::min(kColumnsAtOnce, n - first); ++i) {
      const uint32_t word = words.of(i);
      if (rest(word) <= most && (!bounded || rest(word) <= bound(piece[i])))
        offer(first + i, piece[i] + gumbel_of(uniform(word)));
    }
  }
}

}  // namespace paceline
