// The paged cache in the layout attention reads: by layer, block and key head, keys with sixteen positions side by
// side, values with a position's channels side by side.
//
//   keys   [D][16]      values [16][D]      (f16, or int8 with one float scale per position)
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <vector>

#include "half.h"
#include "simd.h"

namespace paceline {

constexpr int kPage = 16;  // slots of a block

enum class KvFormat : int { f16 = 0, int8 = 1 };

class Cache {
 public:
  Cache(KvFormat format, int layers, int64_t blocks, int heads, int head_dim)
      : format(format), layers(layers), blocks(blocks), heads(heads), head_dim(head_dim) {
    if (layers < 1 || blocks < 1 || heads < 1 || head_dim < kLanes || head_dim % kLanes)
      throw std::invalid_argument("a cache needs layers, blocks, heads, and a head size that is a multiple of 16");
    if (format != KvFormat::f16 && format != KvFormat::int8) throw std::invalid_argument("unknown cache format");
    constexpr int kMost = 1 << 16;  // of layers, heads and channels: their product with a slot's bytes then fits
    if (layers > kMost || heads > kMost || head_dim > kMost || blocks > (int64_t{1} << 62) / layers / block_bytes())
      throw std::invalid_argument("a cache cannot be this large");
    if (blocks > (int64_t{1} << 46) / static_cast<int64_t>(layers * block_bytes())) throw std::bad_alloc();
    // Fresh pages are zero and take no memory until they are written; huge ones where the system has them, since a long
    // context touches many.
    bytes_ = static_cast<size_t>(layers) * blocks * block_bytes();
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<uint8_t*>(memory);
#if defined(MADV_HUGEPAGE)
    madvise(memory, bytes_, MADV_HUGEPAGE);
#endif
  }
  ~Cache() { munmap(data_, bytes_); }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  size_t element_bytes() const { return format == KvFormat::f16 ? 2 : 1; }
  size_t side_bytes() const {  // keys or values of one head in one block
    return kPage * (head_dim * element_bytes() + (format == KvFormat::int8 ? sizeof(float) : 0));
  }
  int64_t block_bytes() const { return 2 * heads * static_cast<int64_t>(side_bytes()); }

  uint8_t* keys(int layer, int64_t block, int head) const {
    return data_ + ((static_cast<size_t>(layer) * blocks + block) * heads + head) * 2 * side_bytes();
  }
  uint8_t* values(int layer, int64_t block, int head) const { return keys(layer, block, head) + side_bytes(); }
  // int8: the scales of a side's sixteen positions follow its elements.
  float* scales(uint8_t* side) const { return reinterpret_cast<float*>(side + kPage * head_dim); }
  const float* scales(const uint8_t* side) const {
    return reinterpret_cast<const float*>(side + kPage * head_dim);
  }

  void store_key(int layer, int64_t slot, int head, const float* key) {
    put(keys(layer, slot / kPage, head), slot % kPage, kPage, 1, key);
  }
  void store_value(int layer, int64_t slot, int head, const float* value) {
    put(values(layer, slot / kPage, head), slot % kPage, 1, head_dim, value);
  }

  // Copy one slot to another place: within the cache, or to a tile of the same layout.
  void copy_key(const uint8_t* from, int64_t at, uint8_t* to, int64_t target) const {
    if (format == KvFormat::f16) return copy_column<uint16_t>(from, at, to, target);
    copy_column<uint8_t>(from, at, to, target);
    scales(to)[target] = scales(from)[at];
  }
  void copy_value(const uint8_t* from, int64_t at, uint8_t* to, int64_t target) const {
    const size_t row = head_dim * element_bytes();
    std::memcpy(to + target * row, from + at * row, row);
    if (format == KvFormat::int8) scales(to)[target] = scales(from)[at];
  }

  // Slot source[i] to slot target[i] in every layer; everything is read before anything is written.
  void move(const int64_t* source, const int64_t* target, int64_t count) {
    const int64_t tiles = (count + kPage - 1) / kPage;
    std::vector<uint8_t> held(static_cast<size_t>(tiles) * 2 * side_bytes());
    const auto tile = [&](int64_t i, int side) { return held.data() + (i / kPage * 2 + side) * side_bytes(); };
    for (int layer = 0; layer < layers; ++layer) {
      for (int head = 0; head < heads; ++head) {
        for (int64_t i = 0; i < count; ++i) {
          copy_key(keys(layer, source[i] / kPage, head), source[i] % kPage, tile(i, 0), i % kPage);
          copy_value(values(layer, source[i] / kPage, head), source[i] % kPage, tile(i, 1), i % kPage);
        }
        for (int64_t i = 0; i < count; ++i) {
          copy_key(tile(i, 0), i % kPage, keys(layer, target[i] / kPage, head), target[i] % kPage);
          copy_value(tile(i, 1), i % kPage, values(layer, target[i] / kPage, head), target[i] % kPage);
        }
      }
    }
  }

  const KvFormat format;
  const int layers;
  const int64_t blocks;
  const int heads, head_dim;

 private:
  // What is cached is finite, or a masked key would not count for nothing: zero times infinity is NaN.
  static F finite(const float* x) { return min(max(load(x), set(-65504.0f)), set(65504.0f)); }

  // Channel d of position `at` lies at element d * channel + at * position.
  void put(uint8_t* side, int64_t at, int64_t channel, int64_t position, const float* x) const {
    if (format == KvFormat::f16) {
      auto* out = reinterpret_cast<uint16_t*>(side) + at * position;
      for (int d = 0; d < head_dim; d += kLanes) {
        uint16_t halves[kLanes];
        store_half(halves, finite(x + d));
        for (int i = 0; i < kLanes; ++i) out[(d + i) * channel] = halves[i];
      }
      return;
    }
    F high = zero();
    for (int d = 0; d < head_dim; d += kLanes) high = max(high, abs(finite(x + d)));
    const float largest = max_lane(high);
    const F inverse = set(std::min(127.0f / largest, std::numeric_limits<float>::max()));  // finite
    scales(side)[at] = largest / 127.0f;
    auto* out = reinterpret_cast<int8_t*>(side) + at * position;
    for (int d = 0; d < head_dim; d += kLanes) {
      int8_t rounded[kLanes];
      store_int8(rounded, min(round_even(mul(finite(x + d), inverse)), set(127.0f)));
      for (int i = 0; i < kLanes; ++i) out[(d + i) * channel] = rounded[i];
    }
  }

  template <class T>
  void copy_column(const uint8_t* from, int64_t at, uint8_t* to, int64_t target) const {
    const T* source = reinterpret_cast<const T*>(from) + at;
    T* out = reinterpret_cast<T*>(to) + target;
    for (int d = 0; d < head_dim; ++d) out[d * kPage] = source[d * kPage];
  }

  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace paceline
