// Choosing a token: the Gumbel-max trick with noise keyed by (seed, position), as the contract of `sample` has it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "simd.h"

namespace paceline {

struct Draw {
  uint64_t seed;
  uint64_t position;
  double temperature;  // 0 is argmax
  int64_t top_k;
  double top_p, min_p;
};

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
// A lower temperature would overflow; at this one no noise changes the choice any more.
constexpr double kColdest = 1e-20;

inline int64_t argmax(const float* x, int64_t n) {  // the first of equal values; NaN counts as nothing
  F high = set(-std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) high = max(load(x + i), high);  // x86: of a NaN and b, the second
  float best = max_lane(high);
  for (; i < n; ++i)
    if (x[i] > best) best = x[i];
  for (i = 0; i < n; ++i)
    if (x[i] == best) return i;
  return 0;  // nothing but NaN
}

// Ids, in ascending order, that survive top-k, top-p and min-p.
inline std::vector<int64_t> nucleus(const std::vector<float>& scaled, const Draw& draw) {
  std::vector<int64_t> ids(scaled.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto likelier = [&](int64_t a, int64_t b) { return scaled[a] != scaled[b] ? scaled[a] > scaled[b] : a < b; };
  if (draw.top_k > 0 && draw.top_k < static_cast<int64_t>(ids.size())) {
    std::nth_element(ids.begin(), ids.begin() + draw.top_k - 1, ids.end(), likelier);
    ids.resize(draw.top_k);
  }
  if (draw.top_p < 1.0) {
    std::sort(ids.begin(), ids.end());  // a sum in a fixed order
    const float largest = scaled[*std::min_element(ids.begin(), ids.end(), likelier)];
    const auto weight = [&](int64_t id) { return std::exp(static_cast<double>(scaled[id] - largest)); };
    double total = 0, likely = 0;
    std::vector<int64_t> few;  // hold the mass almost always; sorting everything is the cost here
    for (const int64_t id : ids) {
      const double w = weight(id);
      total += w;
      if (w > 1e-4) few.push_back(id), likely += w;
    }
    if (likely >= draw.top_p * total) ids = std::move(few);
    std::sort(ids.begin(), ids.end(), likelier);
    double mass = 0;
    size_t kept = 0;
    while (kept < ids.size() && mass < draw.top_p * total) mass += weight(ids[kept++]);
    ids.resize(std::max<size_t>(kept, 1));
  }
  if (draw.min_p > 0) {
    const float largest = scaled[*std::min_element(ids.begin(), ids.end(), likelier)];
    const double floor = largest + std::log(draw.min_p);
    ids.erase(std::remove_if(ids.begin(), ids.end(), [&](int64_t id) { return scaled[id] < floor; }), ids.end());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// logits / T for a T above 0, [n].
inline void scale_logits(const float* logits, int64_t n, double temperature, float* out) {
  const auto divisor = static_cast<float>(std::max(temperature, kColdest));
  for (int64_t i = 0; i < n; ++i) {
    const float value = logits[i] / divisor;
    out[i] = value == value ? value : -std::numeric_limits<float>::infinity();  // NaN has no place in an order
  }
}

inline int64_t sample_row(const float* logits, int64_t n, const Draw& draw, std::vector<float>& scaled) {
  const int64_t best = argmax(logits, n);
  if (draw.temperature <= 0) return best;
  scaled.resize(n);
  scale_logits(logits, n, draw.temperature, scaled.data());
  const float floor = scaled[best] + gumbel(draw.position, best, draw.seed) - kNoiseCeiling;
  int64_t winner = best;
  float highest = -std::numeric_limits<float>::infinity();
  const auto consider = [&](int64_t id) {
    if (scaled[id] < floor) return;
    const float value = scaled[id] + gumbel(draw.position, id, draw.seed);
    if (value > highest) highest = value, winner = id;
  };
  if (draw.top_k > 0 || draw.top_p < 1.0 || draw.min_p > 0) {
    for (const int64_t id : nucleus(scaled, draw)) consider(id);
  } else {
    for (int64_t id = 0; id < n; ++id) consider(id);
  }
  return winner;
}

}  // namespace paceline
