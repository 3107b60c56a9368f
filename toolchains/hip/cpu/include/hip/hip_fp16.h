// IEEE half precision: __half, __half2, and HIP's functions on them.
#pragma once

#include <hip/hip_runtime.h>
#include <hipcpu/small_float.h>

using __half = hipcpu::SmallFloat<hipcpu::HalfFormat>;
using __half2 = hipcpu::SmallFloat2<hipcpu::HalfFormat>;
using half = __half;
using half2 = __half2;

HIPCPU_INLINE __half __float2half(float x) { return __half(x); }
HIPCPU_INLINE __half __double2half(double x) { return __half(x); }
HIPCPU_INLINE float __half2float(__half x) { return x; }
HIPCPU_INLINE __half __ushort_as_half(unsigned short bits) { return __half::from_bits(bits); }
HIPCPU_INLINE __half __short_as_half(short bits) {
  return __half::from_bits(static_cast<uint16_t>(bits));
}
HIPCPU_INLINE unsigned short __half_as_ushort(__half x) { return x.data; }
HIPCPU_INLINE short __half_as_short(__half x) { return static_cast<short>(x.data); }

#define HIPCPU_HALF_ROUNDING(suffix, rounding)                                            \
  HIPCPU_INLINE __half __float2half_##suffix(float x) {                                   \
    return __half::from_bits(                                                             \
        hipcpu::encode_rounded<hipcpu::HalfFormat>(x, hipcpu::Rounding::rounding));       \
  }
HIPCPU_HALF_ROUNDING(rn, kNearest)
HIPCPU_HALF_ROUNDING(rz, kTowardsZero)
HIPCPU_HALF_ROUNDING(rd, kDown)
HIPCPU_HALF_ROUNDING(ru, kUp)
#undef HIPCPU_HALF_ROUNDING

#define HIPCPU_HALF_INTEGER(name, T)                                                      \
  HIPCPU_INLINE __half __##name##2half_rn(T x) { return __half(x); }                      \
  HIPCPU_INLINE T __half2##name##_rn(__half x) {                                          \
    return static_cast<T>(__builtin_rintf(x));                                            \
  }                                                                                       \
  HIPCPU_INLINE T __half2##name##_rz(__half x) { return static_cast<T>(__half2float(x)); } \
  HIPCPU_INLINE T __half2##name##_rd(__half x) {                                          \
    return static_cast<T>(__builtin_floorf(x));                                           \
  }                                                                                       \
  HIPCPU_INLINE T __half2##name##_ru(__half x) { return static_cast<T>(__builtin_ceilf(x)); }
HIPCPU_HALF_INTEGER(short, short)
HIPCPU_HALF_INTEGER(ushort, unsigned short)
HIPCPU_HALF_INTEGER(int, int)
HIPCPU_HALF_INTEGER(uint, unsigned)
HIPCPU_HALF_INTEGER(ll, long long)
HIPCPU_HALF_INTEGER(ull, unsigned long long)
#undef HIPCPU_HALF_INTEGER

HIPCPU_INLINE __half2 make_half2(__half x, __half y) { return {x, y}; }
HIPCPU_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
HIPCPU_INLINE __half2 __half2half2(__half x) { return {x, x}; }
HIPCPU_INLINE __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
HIPCPU_INLINE __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
HIPCPU_INLINE __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
HIPCPU_INLINE float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
HIPCPU_INLINE __half __low2half(__half2 v) { return v.x; }
HIPCPU_INLINE __half __high2half(__half2 v) { return v.y; }
HIPCPU_INLINE __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
HIPCPU_INLINE __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
HIPCPU_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
HIPCPU_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
