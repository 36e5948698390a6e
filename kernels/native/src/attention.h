// Attention of new rows over the paged cache. Every row takes its keys in order of position, in tiles of sixteen that
// start at multiples of sixteen; a tree node's ancestors are gathered to where plain decoding would have put them. So a
// row's bits do not depend on its neighbours, on the tree, or on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "attention_tiles.h"
#include "cache.h"
#include "layout.h"
#include "simd.h"

namespace paceline {

// One layer's attention, shared by all threads of a pass.
class Attention {
 public:
  Attention(const Cache& cache, int layer, int query_heads)
      : cache_(cache), layer_(layer), query_heads_(query_heads), group_(query_heads / cache.heads) {}

  // floats of one partial result: the weighted sum, the largest score, the sum of weights
  int64_t partial_size() const { return cache_.head_dim + 2; }

  // Room for any task; before a pass.
  void reserve(AttentionScratch& s) const { s.reserve(cache_, static_cast<size_t>(kRowsPerTask) * group_); }

  // queries: row r's head h at q + r * stride + h * D, scaled. Results go to `out` [R, Hq * D] where a row has one
  // chunk, else to `partials`.
  void run(const Layout& layout, const Task& task, int head, const float* q, int64_t stride, float* out,
           float* partials, AttentionScratch& scratch) const {
    int64_t longest = 0;
    for (int64_t r = task.begin; r < task.end; ++r) longest = std::max(longest, layout.length(r));
    const int64_t first = task.chunk * kChunk;
    const int count = static_cast<int>(task.end - task.begin) * group_;
    const Work w{layout, task, head, count, first, std::min(first + kChunk, longest), scratch};
    for (int i = 0; i < count; ++i) {
      const float* query = q + row(w, i) * stride + query_head(w, i) * cache_.head_dim;
      for (int64_t d = 0; d < cache_.head_dim; d += kLanes)
        store(scratch.queries.data() + d * count + i * kLanes, load(query + d));
    }
    if (cache_.format == KvFormat::f16) {
      run<HalfKv>(w, out, partials);
    } else {
      run<Int8Kv>(w, out, partials);
    }
  }

  // Ask the memory for what a task reads first.
  void ask(const Layout& layout, const Task& task, int head) const {
    const int64_t tile = task.chunk * kChunk / kPage;
    ask<Side::keys>(layout, task.sequence, head, tile, tile + kTilesTogether, layout.length(task.end - 1));
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
    for (int64_t first = 0; first < chunks; first += kLanes) {
      const int count = static_cast<int>(std::min<int64_t>(kLanes, chunks - first));
      float factors[kLanes] = {};
      for (int c = 0; c < count; ++c) factors[c] = part(first + c)[d_size] - largest;
      store(factors, exp(load(factors)));
      for (int c = 0; c < count; ++c) weight += part(first + c)[d_size + 1] * factors[c];
      for (int64_t d = 0; d < d_size; d += kLanes) {
        F total = load(target + d);
        for (int c = 0; c < count; ++c) total = fma(load(part(first + c) + d), set(factors[c]), total);
        store(target + d, total);
      }
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

  // A task and a key head, in the hands of one thread.
  struct Work {
    const Layout& layout;
    const Task& task;
    int head;
    int count;            // queries: of each row those that share the head
    int64_t first, last;  // positions of the keys
    AttentionScratch& scratch;
  };
  int64_t row(const Work& w, int query) const { return w.task.begin + query / group_; }
  int query_head(const Work& w, int query) const { return w.head * group_ + query % group_; }

  float* partial_of(const Work& w, int query, float* partials) const {
    return partial(partials, w.layout.first_partial(row(w, query)) + w.task.chunk, query_head(w, query));
  }

  template <class Kv>
  void run(const Work& w, float* out, float* partials) const {
    score_keys<Kv>(w);
    weigh(w, partials);
    sum_values<Kv>(w);
    finish(w, out, partials);
  }

  // Scores of all queries and keys.
  template <class Kv>
  void score_keys(const Work& w) const {
    for_tiles<Side::keys>(w, [&](const Tiles& keys, int begin, int end, int64_t at) {
      score<Kv>(cache_, keys, begin, end, w.count, at, w.scratch);
    });
  }

  // Scores to weights.
  void weigh(const Work& w, float* partials) const {
    const int64_t tile = w.first / kPage;
    ask<Side::values>(w.layout, w.task.sequence, w.head, tile, tile + kTilesTogether, w.last);
    const auto scores = [&](int i) { return w.scratch.scores.data() + static_cast<int64_t>(i) * kChunk; };
    const auto seen = [&](int i) {
      return std::clamp<int64_t>(w.layout.length(row(w, i)) - w.first, 0, w.last - w.first);
    };
    // In a loop of its own, where searches overlap: the next one would not start before all exponentials of this one.
    for (int i = 0; i < w.count; ++i) w.scratch.largest[i] = largest_score(scores(i), seen(i));
    for (int i = 0; i < w.count; ++i) {
      const float largest = w.scratch.largest[i], weight = soften(scores(i), seen(i), w.last - w.first, largest);
      if (seen(i) > 0 && w.layout.chunks(row(w, i)) > 1) {
        float* target = partial_of(w, i, partials);
        target[cache_.head_dim] = largest;
        target[cache_.head_dim + 1] = weight;
      }
      w.scratch.weights[i] = weight;
    }
  }

  // Weighted sums of the values, for all queries.
  template <class Kv>
  void sum_values(const Work& w) const {
    std::fill_n(w.scratch.sums.begin(), static_cast<int64_t>(w.count) * cache_.head_dim, 0.0f);
    for_tiles<Side::values>(w, [&](const Tiles& values, int begin, int end, int64_t at) {
      accumulate<Kv>(cache_, values, begin, end, at, w.scratch);
    });
  }

  // Sums to where they are read: the result of a row that has one chunk, a part of it else.
  void finish(const Work& w, float* out, float* partials) const {
    const int64_t d_size = cache_.head_dim;
    for (int i = 0; i < w.count; ++i) {
      const int64_t chunks = w.layout.chunks(row(w, i));
      if (w.task.chunk >= chunks) continue;
      const float* sums = w.scratch.sums.data() + i * d_size;
      if (chunks > 1) {
        std::copy(sums, sums + d_size, partial_of(w, i, partials));
      } else {
        float* target = out + (row(w, i) * query_heads_ + query_head(w, i)) * d_size;
        for (int64_t d = 0; d < d_size; d += kLanes)
          store(target + d, div(load(sums + d), set(w.scratch.weights[i])));
      }
    }
  }

  enum class Side { keys, values };

  template <Side side>
  const uint8_t* side_of(int64_t block, int head) const {
    return side == Side::keys ? cache_.keys(layer_, block, head) : cache_.values(layer_, block, head);
  }
  // Where a tile stands in the cache.
  template <Side side>
  const uint8_t* tile_of(const Work& w, int64_t tile) const {
    return side_of<side>(w.layout.block(w.task.sequence, tile), w.head);
  }

  // Ask the memory for tiles [from, to) of a side, as far as they hold positions below `last`.
  template <Side side>
  void ask(const Layout& layout, int64_t sequence, int head, int64_t from, int64_t to, int64_t last) const {
    for (int64_t tile = from; tile < to && tile * kPage < last; ++tile) {
      const uint8_t* memory = side_of<side>(layout.block(sequence, tile), head);
      for (size_t line = 0; line < cache_.side_bytes(); line += 64) prefetch(memory + line);
    }
  }

  // Calls fn(tiles, first query, last query, place among the task's keys) for all tiles of a task: for a few at once
  // where all rows share them, else for each and row by row.
  template <Side side, class Fn>
  void for_tiles(const Work& w, Fn&& fn) const {
    const int64_t end = (w.last + kPage - 1) / kPage;
    const auto shared = [&](int64_t tile) { return tile < end && w.layout.shared(w.task.sequence, tile); };
    for (int64_t tile = w.first / kPage; tile < end;) {
      Tiles tiles;
      for (int i = 0; i < kTilesTogether; ++i) {
        tiles.now[i] = tile_of<side>(w, std::min(tile + i, end - 1));
        tiles.next[i] = tile_of<side>(w, std::min(tile + kTilesTogether + i, end - 1));
      }
      const int64_t p = tile * kPage;
      for (tiles.count = 0; tiles.count < kTilesTogether && shared(tile + tiles.count);) ++tiles.count;
      if (tiles.count) {
        fn(tiles, 0, w.count, p - w.first);
        tile += tiles.count;
        continue;
      }
      tiles.count = 1;
      for (int begin = 0; begin < w.count; begin += group_) {
        if (w.layout.length(row(w, begin)) <= p) continue;
        tiles.now[0] = gather<side>(w, row(w, begin), p);
        fn(tiles, begin, begin + group_, p - w.first);
      }
      ++tile;
    }
  }

  // The tile at position p as row r sees it: as it stands in the cache where the row's nodes are in line, else a copy
  // with them put in line. What is beyond the row's end counts for nothing.
  template <Side side>
  const uint8_t* gather(const Work& w, int64_t r, int64_t p) const {
    const int64_t sequence = w.task.sequence, end = std::min(p + kPage, w.layout.length(r));
    const uint8_t* const here = tile_of<side>(w, p / kPage);
    uint8_t* copy = nullptr;
    for (int64_t position = std::max(p, w.layout.context(sequence)); position < end; ++position) {
      const int64_t slot = w.layout.slot(sequence, r, position);
      if (slot == position) continue;
      if (!copy) {
        copy = w.scratch.tile.data();
        std::memcpy(copy, here, cache_.side_bytes());
      }
      const uint8_t* from = tile_of<side>(w, slot / kPage);
      if constexpr (side == Side::keys) {
        cache_.copy_key(from, slot % kPage, copy, position - p);
      } else {
        cache_.copy_value(from, slot % kPage, copy, position - p);
      }
    }
    return copy ? copy : here;
  }

  const Cache& cache_;
  const int layer_, query_heads_, group_;
};

}  // namespace paceline
