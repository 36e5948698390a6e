// What attention computes tile by tile, sixteen positions at once: scores of keys, weights of scores, sums of values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "cache.h"
#include "layout.h"
#include "simd.h"

namespace paceline {

constexpr int kQueryTile = 6;  // queries that share one reading of keys or values: with two vectors each, twelve sums

struct AttentionScratch {  // of one thread
  std::vector<float> scores, sums, weights;  // [queries][kChunk], [queries][D], [queries]
  std::vector<const float*> queries;
  std::vector<float> floats;  // two tiles
  std::vector<uint8_t> tile;  // as it stands in the cache

  void reserve(const Cache& cache, size_t count) {  // of queries; before a pass: nothing grows while threads run
    const size_t d_size = cache.head_dim;
    if (queries.size() < count) {
      queries.resize(count);
      weights.resize(count);
      scores.resize(count * kChunk);
    }
    if (sums.size() < count * d_size) sums.resize(count * d_size);
    if (tile.size() < cache.side_bytes()) tile.resize(cache.side_bytes());
    if (floats.size() < 2 * kPage * d_size) floats.resize(2 * kPage * d_size);
  }
};

// How an element of a side of the cache becomes a float.
struct HalfKv {
  static F load(const uint8_t* side, int64_t element) {
    return load_half(reinterpret_cast<const uint16_t*>(side) + element);
  }
};
struct Int8Kv {
  static F load(const uint8_t* side, int64_t element) {
    return load_int8(reinterpret_cast<const int8_t*>(side) + element);
  }
};
struct FloatKv {  // converted before, because many queries read it
  static F load(const uint8_t* side, int64_t element) {
    return paceline::load(reinterpret_cast<const float*>(side) + element);
  }
};

// scores[i][16 Tiles] = queries[i] . keys of one tile or of two; channels in order.
template <class Kv, int N, int Tiles>
inline void score_tiles(const uint8_t* const* keys, int head_dim, const float* const* queries, float* const* scores) {
  F sums[N][Tiles];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
    for (int t = 0; t < Tiles; ++t) sums[i][t] = zero();
  for (int d = 0; d < head_dim; ++d) {
    F key[Tiles];
    for (int t = 0; t < Tiles; ++t) key[t] = Kv::load(keys[t], d * kPage);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const F query = set(queries[i][d]);
      for (int t = 0; t < Tiles; ++t) sums[i][t] = fma(query, key[t], sums[i][t]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
    for (int t = 0; t < Tiles; ++t) store(scores[i] + t * kPage, sums[i][t]);
}

// sums[i][channels from d on, one vector or two] += weights[i][16] . values of one tile, positions in order.
template <class Kv, int N, int Vectors>
inline void add_values(const uint8_t* values, int head_dim, int d, const float* const* weights, float* const* sums) {
  F total[N][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
    for (int v = 0; v < Vectors; ++v) total[i][v] = load(sums[i] + d + v * kLanes);
  for (int p = 0; p < kPage; ++p) {
    F value[Vectors];
    for (int v = 0; v < Vectors; ++v) value[v] = Kv::load(values, p * head_dim + d + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const F weight = set(weights[i][p]);
      for (int v = 0; v < Vectors; ++v) total[i][v] = fma(weight, value[v], total[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
    for (int v = 0; v < Vectors; ++v) store(sums[i] + d + v * kLanes, total[i][v]);
}

inline float exp_one(float x) {
  float lanes[kLanes];
  store(lanes, exp(set(x)));
  return lanes[0];
}

// `count` elements of a side as floats, into `out`.
template <class Kv>
inline const uint8_t* to_floats(const uint8_t* side, int64_t count, float* out) {
  for (int64_t e = 0; e < count; e += kLanes) store(out + e, Kv::load(side, e));
  return reinterpret_cast<const uint8_t*>(out);
}

// Queries [begin, end) against Tiles tiles; results at position `at` of their scores.
template <class Kv, int Tiles>
void score(const Cache& cache, const uint8_t* const* keys, int begin, int end, int64_t at, AttentionScratch& s) {
  if (end - begin > kQueryTile && !std::is_same_v<Kv, FloatKv>) {
    const int64_t size = static_cast<int64_t>(kPage) * cache.head_dim;
    const uint8_t* floats[Tiles];
    for (int t = 0; t < Tiles; ++t) floats[t] = to_floats<Kv>(keys[t], size, s.floats.data() + t * size);
    score<FloatKv, Tiles>(cache, floats, begin, end, at, s);
  } else {
    for (int i = begin; i < end; i += kQueryTile) {
      float* scores[kQueryTile];
      const int n = std::min(kQueryTile, end - i);
      for (int j = 0; j < n; ++j) scores[j] = s.scores.data() + static_cast<int64_t>(i + j) * kChunk + at;
      by_count<kQueryTile>(n, [&](auto N) {
        score_tiles<Kv, N, Tiles>(keys, cache.head_dim, s.queries.data() + i, scores);
      });
    }
  }
  if constexpr (std::is_same_v<Kv, Int8Kv>) {
    for (int t = 0; t < Tiles; ++t) {
      const F scale = load(cache.scales(keys[t]));
      for (int i = begin; i < end; ++i) {
        float* scores = s.scores.data() + static_cast<int64_t>(i) * kChunk + at + t * kPage;
        store(scores, mul(load(scores), scale));
      }
    }
  }
}

// Adds what the values of one tile give for queries [begin, end), whose weights stand at position `at`.
template <class Kv>
void accumulate(const Cache& cache, const uint8_t* values, int begin, int end, int64_t at, AttentionScratch& s) {
  if constexpr (std::is_same_v<Kv, Int8Kv>) {
    const F scale = load(cache.scales(values));
    for (int i = begin; i < end; ++i) {
      float* weights = s.scores.data() + static_cast<int64_t>(i) * kChunk + at;
      store(weights, mul(load(weights), scale));
    }
  }
  if (end - begin > kQueryTile && !std::is_same_v<Kv, FloatKv>) {
    const int64_t size = static_cast<int64_t>(kPage) * cache.head_dim;
    return accumulate<FloatKv>(cache, to_floats<Kv>(values, size, s.floats.data()), begin, end, at, s);
  }
  for (int i = begin; i < end; i += kQueryTile) {
    float *sums[kQueryTile], *weights[kQueryTile];
    const int n = std::min(kQueryTile, end - i);
    for (int j = 0; j < n; ++j) {
      sums[j] = s.sums.data() + static_cast<int64_t>(i + j) * cache.head_dim;
      weights[j] = s.scores.data() + static_cast<int64_t>(i + j) * kChunk + at;
    }
    by_count<kQueryTile>(n, [&](auto N) {
      int d = 0;
      for (; d + 2 * kLanes <= cache.head_dim; d += 2 * kLanes)
        add_values<Kv, N, 2>(values, cache.head_dim, d, weights, sums);
      if (d < cache.head_dim) add_values<Kv, N, 1>(values, cache.head_dim, d, weights, sums);
    });
  }
}

// Scores [size] to weights e^(score - largest), those from `seen` on to zero. Returns (largest, sum of weights).
inline std::pair<float, float> soften(float* scores, int64_t seen, int64_t size) {
  const F lowest = set(-std::numeric_limits<float>::infinity());
  const auto seen_from = [&](int64_t p) { return static_cast<int>(std::clamp<int64_t>(seen - p, 0, kLanes)); };
  F high = lowest, total = zero();
  for (int64_t p = 0; p < seen; p += kLanes) high = max(high, first_lanes(load(scores + p), seen_from(p), lowest));
  const float largest = max_lane(high);
  for (int64_t p = 0; p < size; p += kLanes) {
    const int valid = seen_from(p);
    F weight = zero();
    if (valid) {
      const F x = first_lanes(load(scores + p), valid, lowest);  // what nobody sees may be above the largest
      weight = first_lanes(exp(sub(x, set(largest))), valid, zero());
    }
    store(scores + p, weight);
    total = add(total, weight);
  }
  return {largest, sum(total)};
}

}  // namespace paceline
