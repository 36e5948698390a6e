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

constexpr int kTilesTogether = 2;  // tiles of one step

struct AttentionScratch {  // of one thread
  std::vector<float> queries, scores, sums;  // [D / 16][queries][16], [queries][kChunk], [queries][D]
  std::vector<float> largest, weights;       // [queries]: score, sum of weights
  std::vector<uint8_t> tile;                 // as it stands in the cache

  void reserve(const Cache& cache, size_t count) {  // of queries; before a pass: nothing grows while threads run
    const size_t size = count * cache.head_dim;
    if (queries.size() < size) queries.resize(size);
    if (scores.size() < count * kChunk) scores.resize(count * kChunk);
    if (sums.size() < size) sums.resize(size);
    if (largest.size() < count) largest.resize(count);
    if (weights.size() < count) weights.resize(count);
    if (tile.size() < cache.side_bytes()) tile.resize(cache.side_bytes());
  }
};

// How an element of a side of the cache becomes a float.
struct HalfKv {
  static constexpr int64_t kBytes = 2;
  static F load(const uint8_t* side, int64_t element) {
    return load_half(reinterpret_cast<const uint16_t*>(side) + element);
  }
};
struct Int8Kv {
  static constexpr int64_t kBytes = 1;
  static F load(const uint8_t* side, int64_t element) {
    return load_int8(reinterpret_cast<const int8_t*>(side) + element);
  }
};

// A few tiles of a side, and those that come after them. The kernels ask the memory for the latter bit by bit while they
// read the former: tiles lie apart, so that the hardware does not see what comes next, and asked for all at once they
// would fill the queue of requests.
struct Tiles {
  const uint8_t *now[kTilesTogether], *next[kTilesTogether];
  int count;
};

// The kernels below read what belongs to several queries at distances that the compiler knows: one register then
// addresses all of it, where a pointer for each query would be one load more for each number.

// scores[i][16 Tiles] = queries[i] . keys of Tiles tiles; channels in order. Blocks of sixteen channels lie `block`
// floats apart, queries within them sixteen.
template <class Kv, int N, int Tiles>
inline void score_tiles(const uint8_t* const* keys, const uint8_t* const* next, int head_dim, const float* queries,
                        int64_t block, float* scores) {
  F sums[N][Tiles];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    for (int t = 0; t < Tiles; ++t) sums[i][t] = zero();
  for (int first = 0; first < head_dim; first += kLanes, queries += block) {
#pragma GCC unroll 1
    for (int d = 0; d < kLanes; ++d) {
      F key[Tiles];
      for (int t = 0; t < Tiles; ++t) {
        key[t] = Kv::load(keys[t], (first + d) * kPage);
        prefetch(next[t] + (first + d) * kPage * Kv::kBytes);
      }
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) {
        const F query = set(queries[i * kLanes + d]);
        for (int t = 0; t < Tiles; ++t) sums[i][t] = fma(query, key[t], sums[i][t]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    for (int t = 0; t < Tiles; ++t) store(scores + i * kChunk + t * kPage, sums[i][t]);
}

// sums[i][Vectors * 16 channels] += weights[i][16 tiles] . values of the tiles, positions in order.
template <class Kv, int N, int Vectors>
inline void add_values(const Tiles& values, int head_dim, int d, const float* weights, float* sums) {
  F total[N][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    for (int v = 0; v < Vectors; ++v) total[i][v] = load(sums + i * head_dim + v * kLanes);
  for (int t = 0; t < values.count; ++t, weights += kPage) {
#pragma GCC unroll 1
    for (int p = 0; p < kPage; ++p) {
      F value[Vectors];
      for (int v = 0; v < Vectors; ++v) value[v] = Kv::load(values.now[t], p * head_dim + d + v * kLanes);
      prefetch(values.next[t] + (p * head_dim + d) * Kv::kBytes);
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) {
        const F weight = set(weights[i * kChunk + p]);
        for (int v = 0; v < Vectors; ++v) total[i][v] = fma(weight, value[v], total[i][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    for (int v = 0; v < Vectors; ++v) store(sums + i * head_dim + v * kLanes, total[i][v]);
}

// Calls fn(first, count) for queries [begin, end) in groups of even size, whose sums fit the registers; the compiler
// knows the count.
template <class Fn>
inline void for_query_tiles(int begin, int end, Fn&& fn) {
  for (int left = (end - begin + kQueryTile - 1) / kQueryTile; begin < end; --left) {
    const int count = (end - begin + left - 1) / left;
    by_count<kQueryTile>(count, [&](auto N) { fn(begin, N); });
    begin += count;
  }
}

// int8: scores or weights of queries [begin, end) times the scales of the tiles' positions.
inline void scale_scores(const Cache& cache, const Tiles& tiles, int begin, int end, int64_t at, AttentionScratch& s) {
  for (int t = 0; t < tiles.count; ++t) {
    const F scale = load(cache.scales(tiles.now[t]));
    prefetch(cache.scales(tiles.next[t]));
    for (int i = begin; i < end; ++i) {
      float* scores = s.scores.data() + static_cast<int64_t>(i) * kChunk + at + t * kPage;
      store(scores, mul(load(scores), scale));
    }
  }
}

// Queries [begin, end) of `queries` in all against keys; results at position `at` of their scores.
template <class Kv>
void score(const Cache& cache, const Tiles& keys, int begin, int end, int queries, int64_t at, AttentionScratch& s) {
  const int64_t block = static_cast<int64_t>(queries) * kLanes;
  for (int t = 0; t < keys.count;) {
    const int together = std::min(kTileVectors, keys.count - t);
    for_query_tiles(begin, end, [&](int i, auto N) {
      by_count<kTileVectors>(together, [&](auto T) {
        score_tiles<Kv, N, T>(keys.now + t, keys.next + t, cache.head_dim, s.queries.data() + i * kLanes, block,
                              s.scores.data() + static_cast<int64_t>(i) * kChunk + at + t * kPage);
      });
    });
    t += together;
  }
  if constexpr (std::is_same_v<Kv, Int8Kv>) scale_scores(cache, keys, begin, end, at, s);
}

// Adds what values give for queries [begin, end), whose weights stand at position `at`.
template <class Kv>
void accumulate(const Cache& cache, const Tiles& values, int begin, int end, int64_t at, AttentionScratch& s) {
  if constexpr (std::is_same_v<Kv, Int8Kv>) scale_scores(cache, values, begin, end, at, s);
  for_query_tiles(begin, end, [&](int i, auto N) {
    const float* weights = s.scores.data() + static_cast<int64_t>(i) * kChunk + at;
    float* sums = s.sums.data() + static_cast<int64_t>(i) * cache.head_dim;
    int d = 0;
    for (; d + kTileVectors * kLanes <= cache.head_dim; d += kTileVectors * kLanes)
      add_values<Kv, N, kTileVectors>(values, cache.head_dim, d, weights, sums + d);
    for (; d < cache.head_dim; d += kLanes) add_values<Kv, N, 1>(values, cache.head_dim, d, weights, sums + d);
  });
}

// The largest of the scores that are seen.
inline float largest_score(const float* scores, int64_t seen) {
  const F lowest = set(-std::numeric_limits<float>::infinity());
  F high[4] = {lowest, lowest, lowest, lowest};
  int64_t p = 0;
  for (; p + 4 * kLanes <= seen; p += 4 * kLanes)
    for (int j = 0; j < 4; ++j) high[j] = max(high[j], load(scores + p + j * kLanes));
  for (; p + kLanes <= seen; p += kLanes) high[0] = max(high[0], load(scores + p));
  if (p < seen) high[1] = max(high[1], first_lanes(load(scores + p), static_cast<int>(seen - p), lowest));
  return max_lane(max(max(high[0], high[1]), max(high[2], high[3])));
}

// Scores [size] to weights e^(score - largest), those from `seen` on to zero. Returns the sum of weights.
inline float soften(float* scores, int64_t seen, int64_t size, float largest) {
  const F top = set(largest);
  F total = zero();
  int64_t p = 0;
  for (; p + kLanes <= seen; p += kLanes) {
    const F weight = exp(sub(load(scores + p), top));
    store(scores + p, weight);
    total = add(total, weight);
  }
  if (p < seen) {
    const int rest = static_cast<int>(seen - p);
    const F x = first_lanes(load(scores + p), rest, top);  // what nobody sees may be above the largest
    const F weight = first_lanes(exp(sub(x, top)), rest, zero());
    store(scores + p, weight);
    total = add(total, weight);
    p += kLanes;
  }
  for (; p < size; p += kLanes) store(scores + p, zero());
  return sum(total);
}

}  // namespace paceline
