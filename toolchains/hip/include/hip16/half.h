// IEEE half precision: __half, __half2, and HIP's functions on them.
#pragma once

#include <hip16/small_float.h>

HIP16_BEGIN

using __half = hip16::SmallFloat<hip16::HalfFormat>;
using __half2 = hip16::SmallFloat2<hip16::HalfFormat>;
using half = __half;
using half2 = __half2;

HIP16_INLINE __half __float2half(float x) { return __half(x); }
HIP16_INLINE __half __double2half(double x) { return __half(x); }
HIP16_INLINE float __half2float(__half x) { return x; }
HIP16_INLINE __half __ushort_as_half(unsigned short bits) { return __half::from_bits(bits); }
HIP16_INLINE __half __short_as_half(short bits) {
  return __half::from_bits(static_cast<uint16_t>(bits));
}
HIP16_INLINE unsigned short __half_as_ushort(__half x) { return x.bits(); }
HIP16_INLINE short __half_as_short(__half x) { return static_cast<short>(x.bits()); }

#define HIP16_HALF_ROUNDING(suffix, rounding)                                    \
  HIP16_INLINE __half __float2half_##suffix(float x) {                           \
    return __half::of(                                                           \
        hip16::encode_rounded<hip16::HalfFormat>(x, hip16::Rounding::rounding)); \
  }
HIP16_HALF_ROUNDING(rn, kNearest)
HIP16_HALF_ROUNDING(rz, kTowardsZero)
HIP16_HALF_ROUNDING(rd, kDown)
HIP16_HALF_ROUNDING(ru, kUp)
#undef HIP16_HALF_ROUNDING

#define HIP16_HALF_INTEGER(name, T)                                                       \
  HIP16_INLINE __half __##name##2half_rn(T x) { return __half(x); }                       \
  HIP16_INLINE T __half2##name##_rn(__half x) {                                           \
    return static_cast<T>(__builtin_rintf(x));                                            \
  }                                                                                       \
  HIP16_INLINE T __half2##name##_rz(__half x) { return static_cast<T>(__half2float(x)); } \
  HIP16_INLINE T __half2##name##_rd(__half x) {                                           \
    return static_cast<T>(__builtin_floorf(x));                                           \
  }                                                                                       \
  HIP16_INLINE T __half2##name##_ru(__half x) { return static_cast<T>(__builtin_ceilf(x)); }
HIP16_HALF_INTEGER(short, short)
HIP16_HALF_INTEGER(ushort, unsigned short)
HIP16_HALF_INTEGER(int, int)
HIP16_HALF_INTEGER(uint, unsigned)
HIP16_HALF_INTEGER(ll, long long)
HIP16_HALF_INTEGER(ull, unsigned long long)
#undef HIP16_HALF_INTEGER

HIP16_INLINE __half2 make_half2(__half x, __half y) { return {x, y}; }
HIP16_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
HIP16_INLINE __half2 __half2half2(__half x) { return {x, x}; }
HIP16_INLINE __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
HIP16_INLINE __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
HIP16_INLINE __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
HIP16_INLINE float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
HIP16_INLINE __half __low2half(__half2 v) { return v.x; }
HIP16_INLINE __half __high2half(__half2 v) { return v.y; }
HIP16_INLINE __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
HIP16_INLINE __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
HIP16_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
HIP16_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }

HIP16_END
