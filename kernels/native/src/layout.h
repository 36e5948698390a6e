// Where the rows of one pass stand: read from the host's tensors, checked, and cut into attention's tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cache.h"

namespace paceline {

constexpr int kChunk = 256;   // keys of one task: splits depend on a row's own length and nothing else
constexpr int kRowsPerTask = 8;
// A few rows over a short context are cut finer, so that threads share them evenly.
constexpr int kFewRows = 8, kFewRowsPerTask = 4, kShort = 1024;

// The tensors of one pass, as plain pointers; see the contract of tree_attention for their meaning.
struct Batch {
  int64_t rows, sampled_rows, sequences, table_width;
  const int64_t *ids, *positions, *slots, *sampled;
  const int32_t *row_starts, *contexts, *tables;
  const uint8_t* causal;
  const int64_t* ancestors;
  const float* features = nullptr;  // [rows, feature_width]
  int64_t feature_width = 0;
};

struct Task {
  int64_t sequence, begin, end;  // rows
  int64_t chunk;
};

inline void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

class Layout {
 public:
  // Raises std::invalid_argument for rows, slots or blocks that lie outside of what exists.
  void build(const Batch& b, int64_t blocks, int64_t positions, int64_t vocabulary) {
    check(b, blocks, positions, vocabulary);
    batch_ = b;
    tasks_.clear();
    paths_.clear();
    path_starts_.assign(b.rows, -1);
    first_partial_.resize(b.rows);
    lengths_.resize(b.rows);
    partials_ = 0;
    for (int64_t s = 0; s < b.sequences; ++s) {
      const int64_t begin = b.row_starts[s], end = b.row_starts[s + 1], origin = origin_of(b, s);
      for (int64_t r = begin; r < end; ++r) {
        lengths_[r] = b.positions[r] - origin + 1;
        if (!b.causal[s]) add_path(r, begin, b.contexts[s]);
        first_partial_[r] = partials_;
        partials_ += chunks(r);
      }
      const bool fine = end - begin <= kFewRows && length(end - 1) <= kShort;
      const int64_t step = fine ? kFewRowsPerTask : kRowsPerTask;
      for (int64_t r = begin; r < end; r += step) {
        const int64_t stop = std::min(r + step, end);
        int64_t longest = 0;
        for (int64_t i = r; i < stop; ++i) longest = std::max(longest, chunks(i));
        for (int64_t chunk = 0; chunk < longest; ++chunk) tasks_.push_back({s, r, stop, chunk});
      }
    }
    // Partials are merged in a phase of its own only where a row has several.
    split_ = partials_ > b.rows;
  }

  const Batch& batch() const { return batch_; }
  const std::vector<Task>& tasks() const { return tasks_; }
  int64_t partials() const { return partials_; }
  bool split() const { return split_; }
  int64_t length(int64_t row) const { return lengths_[row]; }  // keys a row sees
  int64_t chunks(int64_t row) const { return (length(row) + kChunk - 1) / kChunk; }
  int64_t first_partial(int64_t row) const { return first_partial_[row]; }

  // Whether a tile of sixteen positions is the same for all rows of a sequence: committed, or a chain's.
  bool shared(int64_t sequence, int64_t tile) const {
    return batch_.causal[sequence] || (tile + 1) * kPage <= batch_.contexts[sequence];
  }
  int64_t context(int64_t sequence) const { return batch_.contexts[sequence]; }
  int64_t block(int64_t sequence, int64_t index) const { return batch_.tables[sequence * batch_.table_width + index]; }
  // Slot, counted within the sequence, of the key that `row` sees at `position`.
  int64_t slot(int64_t sequence, int64_t row, int64_t position) const {
    const int64_t context = batch_.contexts[sequence];
    return position < context || batch_.causal[sequence] ? position
                                                          : context + paths_[path_starts_[row] + position - context];
  }

 private:
  // Ancestors have lower numbers than their descendants, so bits from low to high go down the path.
  void add_path(int64_t row, int64_t begin, int64_t context) {
    path_starts_[row] = static_cast<int64_t>(paths_.size());
    const uint64_t word = static_cast<uint64_t>(batch_.ancestors[row]);
    for (int node = 0; node < 64; ++node)
      if (word >> node & 1) paths_.push_back(node);
    const int64_t depth = static_cast<int64_t>(paths_.size()) - path_starts_[row] - 1;
    require(depth == lengths_[row] - 1 - context && paths_.back() == row - begin,
            "a tree row's ancestors do not fit its position");
  }

  // The position of the first key in a sequence's table: above zero where it looks back on a window only. Its first row
  // follows what is committed.
  static int64_t origin_of(const Batch& b, int64_t s) { return b.positions[b.row_starts[s]] - b.contexts[s]; }

  static void check(const Batch& b, int64_t blocks, int64_t positions, int64_t vocabulary) {
    require(b.rows >= 1 && b.sequences >= 1, "a pass needs at least one row");
    require(b.row_starts[0] == 0 && b.row_starts[b.sequences] == b.rows, "row starts do not cover the rows");
    for (int64_t s = 0; s < b.sequences; ++s)
      require(b.row_starts[s] < b.row_starts[s + 1], "row starts do not ascend: every sequence has rows");
    for (int64_t r = 0; r < b.rows; ++r) {
      require(b.ids[r] >= 0 && b.ids[r] < vocabulary, "a token id lies outside of the vocabulary");
      require(b.positions[r] >= 0 && b.positions[r] < positions, "a position lies outside of the context");
      require(b.slots[r] >= 0 && b.slots[r] < blocks * kPage, "a slot lies outside of the cache");
    }
    for (int64_t i = 0; i < b.sampled_rows; ++i)
      require(b.sampled[i] >= 0 && b.sampled[i] < b.rows, "a sampled row does not exist");
    for (int64_t s = 0; s < b.sequences; ++s) {
      const int64_t begin = b.row_starts[s], end = b.row_starts[s + 1], context = b.contexts[s];
      const int64_t origin = origin_of(b, s);
      require(context >= 0, "a context is negative");
      require(b.causal[s] || end - begin <= 64, "a tree has more than 64 nodes");
      const int64_t used = (context + end - begin + kPage - 1) / kPage;
      require(used <= b.table_width, "a block table is shorter than its sequence");
      for (int64_t i = 0; i < used; ++i) {
        const int64_t block = b.tables[s * b.table_width + i];
        require(block >= 0 && block < blocks, "a block table names a block outside of the cache");
      }
      require(origin >= 0, "a row's position does not follow from its sequence");
      for (int64_t r = begin; r < end; ++r)
        require(b.causal[s] ? b.positions[r] - origin == context + r - begin : b.positions[r] - origin >= context,
                "a row's position does not follow from its sequence");
    }
  }

  Batch batch_{};
  std::vector<Task> tasks_;
  std::vector<int32_t> paths_;
  std::vector<int64_t> path_starts_, first_partial_, lengths_;
  int64_t partials_ = 0;
  bool split_ = false;
};

}  // namespace paceline
