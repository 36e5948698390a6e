// Sixteen lanes of float, int32 or four packed bytes, spelled once per instruction set.
//
// Every kernel is written against these few functions and compiled once per instruction set. A lane's result never
// depends on its neighbours, and multiply-adds are explicit: no compiler flag changes what a kernel computes.
#pragma once

#if defined(PACELINE_AVX512)
#include "simd_avx512.h"
#elif defined(PACELINE_AVX2)
#include "simd_avx2.h"
#else
#include "simd_portable.h"
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "half.h"

namespace paceline {

// Calls fn with a count of 1 … Most that the compiler knows.
template <int Most, class Fn>
inline auto by_count(int count, Fn&& fn) {
  if constexpr (Most > 1) {
    if (count < Most) return by_count<Most - 1>(count, fn);
  }
  return fn(std::integral_constant<int, Most>{});
}

// Asks for the cache line `ahead` bytes after p. That may lie beyond what is allocated, where a pointer must not even be
// formed: it is an address.
inline void prefetch(const void* p, size_t ahead) {
  prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + ahead));
}

// e^x by Cody-Waite reduction and a degree-6 polynomial (relative error below 2e-7); exactly 1 at 0. x is at
// most 88; below -87 the result stays at e^-87.
inline F exp(F x) {
  x = max(x, set(-87.0f));
  const F n = round_even(mul(x, set(1.44269504088896341f)));
  F r = fma(n, set(-0.693145751953125f), x);
  r = fma(n, set(-1.428606820309417e-6f), r);
  F p = set(1.0f / 720);
  p = fma(p, r, set(1.0f / 120));
  p = fma(p, r, set(1.0f / 24));
  p = fma(p, r, set(1.0f / 6));
  p = fma(p, r, set(0.5f));
  p = fma(p, r, set(1.0f));
  p = fma(p, r, set(1.0f));
  return scale_by_power(p, n);
}

}  // namespace paceline
