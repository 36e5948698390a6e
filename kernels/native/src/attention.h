// Attention of new rows over the paged cache. Every row takes its keys in order of position, in tiles of sixteen that
// start at multiples of sixteen; a tree node's ancestors are gathered to where plain decoding would have put them. So a
// row's bits do not depend on its neighbours, on the tree, or on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
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

// One layer's attention, shared by all threads of a pass.
class Attention {
 public:
  Attention(const Cache& cache, int layer, int query_heads)
      : cache_(cache), layer_(layer), query_heads_(query_heads), group_(query_heads / cache.heads) {}

  // floats of one partial result: the weighted sum, the largest score, the sum of weights
  int64_t partial_size() const { return cache_.head_dim + 2; }

  struct Scratch {  // of one thread, grown by `reserve`
    std::vector<float> scores, sums, weights, floats;
    std::vector<uint8_t> tile;
    std::vector<const float*> queries;
  };

  // Room for any task; before a pass.
  void reserve(Scratch& s) const {
    const size_t queries = static_cast<size_t>(kRowsPerTask) * group_, d_size = cache_.head_dim;
    if (s.queries.size() < queries) {
      s.queries.resize(queries);
      s.weights.resize(queries);
      s.scores.resize(queries * kChunk);
    }
    if (s.sums.size() < queries * d_size) s.sums.resize(queries * d_size);
    if (s.tile.size() < cache_.side_bytes()) s.tile.resize(cache_.side_bytes());
    if (s.floats.size() < 2 * kPage * d_size) s.floats.resize(2 * kPage * d_size);
  }

  // queries: row r's head h at q + r * stride + h * D, scaled. Results go to `out` [R, Hq * D] where a row has one
  // chunk, else to `partials`.
  void run(const Layout& layout, const Task& task, int head, const float* q, int64_t stride, float* out,
           float* partials, Scratch& scratch) const {
    if (cache_.format == KvFormat::f16) {
      run<HalfKv>(layout, task, head, q, stride, out, partials, scratch);
    } else {
      run<Int8Kv>(layout, task, head, q, stride, out, partials, scratch);
    }
  }

  // Ask the memory for what a task reads first.
  void ask(const Layout& layout, const Task& task, int head) const {
    const int64_t tile = task.chunk * kChunk / kPage;
    ask<Side::keys>(layout, task.sequence, head, tile, tile + kAhead, layout.length(task.end - 1));
  }

  // Merge the chunks of one row and query head, in order.
  void merge(const Layout& layout, int64_t row, int head, const float* partials, float* out) const {
    const int64_t chunks = layout.chunks(row), d_size = cache_.head_dim;
    if (chunks == 1) return;
    const auto part = [&](int64_t chunk) { return partial(partials, layout.first_partial(row) + chunk, head); };
    float largest = -std::numeric_limits<float>::infinity(), weight = 0;
    for (int64_t c = 0; c < chunks; ++c) largest = std::max(largest, part(c)[d_size]);
    float* target = out + row * query_heads_ * d_size + head * d_size;
    std::fill(target, target + d_size, 0.0f);
    for (int64_t c = 0; c < chunks; ++c) {
      const float factor = exp_one(part(c)[d_size] - largest);
      weight += part(c)[d_size + 1] * factor;
      for (int64_t d = 0; d < d_size; d += kLanes)
        store(target + d, fma(load(part(c) + d), set(factor), load(target + d)));
    }
    for (int64_t d = 0; d < d_size; d += kLanes) store(target + d, div(load(target + d), set(weight)));
  }

 private:
  float* partial(float* partials, int64_t index, int head) const {
    return partials + (index * query_heads_ + head) * partial_size();
  }
  const float* partial(const float* partials, int64_t index, int head) const {
    return partials + (index * query_heads_ + head) * partial_size();
  }

  template <class Kv>
  void run(const Layout& layout, const Task& task, int head, const float* q, int64_t stride, float* out,
           float* partials, Scratch& s) const {
    const int64_t rows = task.end - task.begin, d_size = cache_.head_dim;
    const int count = static_cast<int>(rows) * group_;
    const int64_t first = task.chunk * kChunk;
    int64_t longest = 0;
    for (int64_t r = task.begin; r < task.end; ++r) longest = std::max(longest, layout.length(r));
    const int64_t last = std::min(first + kChunk, longest);
    std::fill_n(s.sums.begin(), count * d_size, 0.0f);
    for (int i = 0; i < count; ++i)
      s.queries[i] = q + (task.begin + i / group_) * stride + (head * group_ + i % group_) * d_size;

    for (int64_t p = first; p < last; p += 2 * kPage) {
      const int64_t tile = p / kPage;
      ask<Side::keys>(layout, task.sequence, head, tile + kAhead, tile + kAhead + 2, last);
      if (p + kPage < last && layout.shared(task.sequence, tile + 1)) {  // then the one before it is shared too
        const uint8_t* keys[] = {cache_.keys(layer_, layout.block(task.sequence, tile), head),
                                 cache_.keys(layer_, layout.block(task.sequence, tile + 1), head)};
        score<Kv, 2>(keys, 0, count, p - first, s);
        continue;
      }
      for (int64_t single = p; single < std::min(p + 2 * kPage, last); single += kPage)
        for_tiles<Side::keys>(layout, task, head, single, s, [&](const uint8_t* keys, int begin, int end) {
          score<Kv, 1>(&keys, begin, end, single - first, s);
        });
    }

    ask<Side::values>(layout, task.sequence, head, first / kPage, first / kPage + kAhead, last);
    for (int i = 0; i < count; ++i) {
      const int64_t row = task.begin + i / group_;
      const int query_head = head * group_ + i % group_;
      float* scores = s.scores.data() + static_cast<int64_t>(i) * kChunk;
      const int64_t seen = std::clamp<int64_t>(layout.length(row) - first, 0, last - first);
      const auto [largest, weight] = soften(scores, seen, last - first);
      if (seen > 0 && layout.chunks(row) > 1) {
        float* target = partial(partials, layout.first_partial(row) + task.chunk, query_head);
        target[d_size] = largest;
        target[d_size + 1] = weight;
      }
      s.weights[i] = weight;
    }

    for (int64_t p = first; p < last; p += kPage) {
      ask<Side::values>(layout, task.sequence, head, p / kPage + kAhead, p / kPage + kAhead + 1, last);
      for_tiles<Side::values>(layout, task, head, p, s, [&](const uint8_t* values, int begin, int end) {
        accumulate<Kv>(values, begin, end, p - first, s);
      });
    }

    for (int i = 0; i < count; ++i) {
      const int64_t row = task.begin + i / group_;
      if (task.chunk >= layout.chunks(row)) continue;
      const int query_head = head * group_ + i % group_;
      const float* sums = s.sums.data() + i * d_size;
      if (layout.chunks(row) > 1) {
        std::copy(sums, sums + d_size, partial(partials, layout.first_partial(row) + task.chunk, query_head));
      } else {
        float* target = out + row * query_heads_ * d_size + query_head * d_size;
        for (int64_t d = 0; d < d_size; d += kLanes) store(target + d, div(load(sums + d), set(s.weights[i])));
      }
    }
  }

  enum class Side { keys, values };

  template <Side side>
  const uint8_t* tile_of(int64_t block, int head) const {
    return side == Side::keys ? cache_.keys(layer_, block, head) : cache_.values(layer_, block, head);
  }

  // Ask the memory for tiles [from, to) of a side, as far as they hold positions below `last`: tiles lie apart, so that
  // the hardware does not see what comes next.
  template <Side side>
  void ask(const Layout& layout, int64_t sequence, int head, int64_t from, int64_t to, int64_t last) const {
    for (int64_t tile = from; tile < to && tile * kPage < last; ++tile) {
      const uint8_t* memory = tile_of<side>(layout.block(sequence, tile), head);
      for (size_t line = 0; line < cache_.side_bytes(); line += 64) prefetch(memory + line);
    }
  }

  static constexpr int64_t kAhead = 2;  // tiles

  // Calls fn(tile, first query, last query) for the tile at position p: once where all rows share it, else row by row.
  template <Side side, class Fn>
  void for_tiles(const Layout& layout, const Task& task, int head, int64_t p, Scratch& s, Fn&& fn) const {
    const int64_t tile = p / kPage;
    if (layout.shared(task.sequence, tile)) {
      const int64_t block = layout.block(task.sequence, tile);
      fn(tile_of<side>(block, head), 0, static_cast<int>(task.end - task.begin) * group_);
      return;
    }
    const int64_t block = layout.block(task.sequence, tile);
    const uint8_t* here = tile_of<side>(block, head);
    for (int64_t r = task.begin; r < task.end; ++r) {
      const int64_t end = std::min(p + kPage, layout.length(r));
      if (end <= p) continue;
      const int begin = static_cast<int>(r - task.begin) * group_;
      fn(gather<side>(layout, task.sequence, r, head, p, end, here, s), begin, begin + group_);
    }
  }

  // The tile at position p as row r sees it: as it stands in the cache, `here`, where its nodes are in line, else a copy
  // with them put in line. What is beyond `end` counts for nothing.
  template <Side side>
  const uint8_t* gather(const Layout& layout, int64_t sequence, int64_t r, int head, int64_t p, int64_t end,
                        const uint8_t* here, Scratch& s) const {
    const uint8_t* tile = here;
    for (int64_t position = std::max(p, layout.context(sequence)); position < end; ++position) {
      const int64_t slot = layout.slot(sequence, r, position);
      if (slot == position) continue;
      if (tile == here) {
        std::memcpy(s.tile.data(), here, cache_.side_bytes());
        tile = s.tile.data();
      }
      const int64_t block = layout.block(sequence, slot / kPage);
      if constexpr (side == Side::keys) {
        cache_.copy_key(cache_.keys(layer_, block, head), slot % kPage, s.tile.data(), position - p);
      } else {
        cache_.copy_value(cache_.values(layer_, block, head), slot % kPage, s.tile.data(), position - p);
      }
    }
    return tile;
  }

  // Queries [begin, end) against Tiles tiles; results at position `at` of their scores.
  template <class Kv, int Tiles>
  void score(const uint8_t* const* keys, int begin, int end, int64_t at, Scratch& s) const {
    if (end - begin > kQueryTile && !std::is_same_v<Kv, FloatKv>) {
      const int64_t size = static_cast<int64_t>(kPage) * cache_.head_dim;
      const uint8_t* floats[Tiles];
      for (int t = 0; t < Tiles; ++t) floats[t] = to_floats<Kv>(keys[t], size, t * size, s);
      score<FloatKv, Tiles>(floats, begin, end, at, s);
    } else {
      for (int i = begin; i < end; i += kQueryTile) {
        float* scores[kQueryTile];
        const int n = std::min(kQueryTile, end - i);
        for (int j = 0; j < n; ++j) scores[j] = s.scores.data() + static_cast<int64_t>(i + j) * kChunk + at;
        by_count<kQueryTile>(n, [&](auto N) {
          score_tiles<Kv, N, Tiles>(keys, cache_.head_dim, s.queries.data() + i, scores);
        });
      }
    }
    if constexpr (std::is_same_v<Kv, Int8Kv>) {
      for (int t = 0; t < Tiles; ++t) {
        const F scale = load(cache_.scales(keys[t]));
        for (int i = begin; i < end; ++i) {
          float* scores = s.scores.data() + static_cast<int64_t>(i) * kChunk + at + t * kPage;
          store(scores, mul(load(scores), scale));
        }
      }
    }
  }

  template <class Kv>
  void accumulate(const uint8_t* values, int begin, int end, int64_t at, Scratch& s) const {
    if constexpr (std::is_same_v<Kv, Int8Kv>) {
      const F scale = load(cache_.scales(values));
      for (int i = begin; i < end; ++i) {
        float* weights = s.scores.data() + static_cast<int64_t>(i) * kChunk + at;
        store(weights, mul(load(weights), scale));
      }
    }
    if (end - begin > kQueryTile && !std::is_same_v<Kv, FloatKv>) {
      const int64_t size = static_cast<int64_t>(kPage) * cache_.head_dim;
      return accumulate<FloatKv>(to_floats<Kv>(values, size, 0, s), begin, end, at, s);
    }
    for (int i = begin; i < end; i += kQueryTile) {
      float *sums[kQueryTile], *weights[kQueryTile];
      const int n = std::min(kQueryTile, end - i);
      for (int j = 0; j < n; ++j) {
        sums[j] = s.sums.data() + static_cast<int64_t>(i + j) * cache_.head_dim;
        weights[j] = s.scores.data() + static_cast<int64_t>(i + j) * kChunk + at;
      }
      by_count<kQueryTile>(n, [&](auto N) {
        int d = 0;
        for (; d + 2 * kLanes <= cache_.head_dim; d += 2 * kLanes)
          add_values<Kv, N, 2>(values, cache_.head_dim, d, weights, sums);
        if (d < cache_.head_dim) add_values<Kv, N, 1>(values, cache_.head_dim, d, weights, sums);
      });
    }
  }

  // A tile's elements as floats, kept at `offset` of the scratch.
  template <class Kv>
  static const uint8_t* to_floats(const uint8_t* side, int64_t size, int64_t offset, Scratch& s) {
    for (int64_t e = 0; e < size; e += kLanes) store(s.floats.data() + offset + e, Kv::load(side, e));
    return reinterpret_cast<const uint8_t*>(s.floats.data() + offset);
  }

  // Scores [size] to weights e^(score - largest), those from `seen` on to zero. Returns (largest, sum of weights).
  static std::pair<float, float> soften(float* scores, int64_t seen, int64_t size) {
    const F lowest = set(-std::numeric_limits<float>::infinity());
    F high = lowest, total = zero();
    for (int64_t p = 0; p < seen; p += kLanes) {
      const F x = first_lanes(load(scores + p), static_cast<int>(std::min<int64_t>(seen - p, kLanes)), lowest);
      high = max(high, x);
    }
    const float largest = max_lane(high);
    for (int64_t p = 0; p < size; p += kLanes) {
      const int valid = static_cast<int>(std::clamp<int64_t>(seen - p, 0, kLanes));
      const F weight = valid ? first_lanes(exp(sub(load(scores + p), set(largest))), valid, zero()) : zero();
      store(scores + p, weight);
      total = add(total, weight);
    }
    return {largest, sum(total)};
  }

  const Cache& cache_;
  const int layer_, query_heads_, group_;
};

}  // namespace paceline
