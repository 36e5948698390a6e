// IEEE half precision without hardware support: for packing, and for machines that have none.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace paceline {

constexpr int kLanes = 16;

inline float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
  uint32_t bits;
  if (rest >= 0x7c00u) {
    bits = 0x7f800000u | (rest & 0x3ffu) << 13;
  } else if (rest >= 0x400u) {
    bits = (rest << 13) + 0x38000000u;
  } else {
    const float tiny = static_cast<float>(rest) * 0x1p-24f;  // subnormal: exact
    std::memcpy(&bits, &tiny, sizeof bits);
  }
  bits |= sign;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint16_t float_to_half(float value) {  // to nearest, ties to even
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {
    float magnitude;
    std::memcpy(&magnitude, &rest, sizeof magnitude);
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyintf(magnitude * 0x1p24f)));
  }
  const uint32_t rounded = rest + 0xfffu + (rest >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}

}  // namespace paceline
