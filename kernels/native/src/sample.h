// Choosing a token: the Gumbel-max trick with noise keyed by (seed, position), as the contract of `sample` has it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "noise.h"
#include "simd.h"

namespace paceline {

struct Draw {
  uint64_t seed;
  uint64_t position;
  double temperature;  // 0 is argmax
  int64_t top_k;
  double top_p, min_p;
};

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
inline std::vector<int64_t> nucleus(const std::vector<float>& scaled, int64_t n, const Draw& draw) {
  std::vector<int64_t> ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  const auto likelier = [&](int64_t a, int64_t b) { return scaled[a] != scaled[b] ? scaled[a] > scaled[b] : a < b; };
  if (draw.top_k > 0 && draw.top_k < n) {
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

// logits / T for a T above 0, [n], padded for scan_noisy.
inline void scale_logits(const float* logits, int64_t n, double temperature, std::vector<float>& out) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  out.resize((n + kColumnsAtOnce - 1) / kColumnsAtOnce * kColumnsAtOnce);
  std::fill(out.begin() + n, out.end(), lowest);
  const auto divisor = static_cast<float>(std::max(temperature, kColdest));
  for (int64_t i = 0; i < n; ++i) {
    const float value = logits[i] / divisor;
    out[i] = value == value ? value : lowest;  // NaN has no place in an order
  }
}

inline int64_t sample_row(const float* logits, int64_t n, const Draw& draw, std::vector<float>& scaled) {
  const int64_t best = argmax(logits, n);
  if (draw.temperature <= 0) return best;
  scale_logits(logits, n, draw.temperature, scaled);
  const float lead = scaled[best] + gumbel(draw.position, best, draw.seed);
  int64_t winner = best;
  if (draw.top_k > 0 || draw.top_p < 1.0 || draw.min_p > 0) {
    float highest = -std::numeric_limits<float>::infinity();
    for (const int64_t id : nucleus(scaled, n, draw)) {
      if (scaled[id] < lead - kNoiseCeiling) continue;
      const float value = scaled[id] + gumbel(draw.position, id, draw.seed);
      if (value > highest) highest = value, winner = id;
    }
    return winner;
  }
  float highest = lead;
  scan_noisy(
      scaled.data(), nullptr, n, draw.position, draw.seed, [&] { return highest; },
      [&](int64_t id, float value) {
        if (value > highest || (value == highest && id < winner)) highest = value, winner = id;
      });
  return winner;
}

}  // namespace paceline
