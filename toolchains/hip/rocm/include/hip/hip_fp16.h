// IEEE half precision: __half, __half2, and HIP's functions on them.
#pragma once

#include <hip/hip_runtime.h>
#include <hiprocm/small_atomics.h>

#pragma clang force_cuda_host_device begin

using __half = hiprocm::SmallFloat<hiprocm::HalfFormat>;
using __half2 = hiprocm::SmallFloat2<hiprocm::HalfFormat>;
using half = __half;
using half2 = __half2;

inline __half __float2half(float x) { return __half(x); }
inline __half __double2half(double x) { return __half(x); }
inline float __half2float(__half x) { return x; }
inline __half __ushort_as_half(unsigned short bits) { return __half::from_bits(bits); }
inline __half __short_as_half(short bits) {
  return __half::from_bits(static_cast<uint16_t>(bits));
}
inline unsigned short __half_as_ushort(__half x) { return x.bits(); }
inline short __half_as_short(__half x) { return static_cast<short>(x.bits()); }

#define HIPROCM_HALF_ROUNDING(suffix, rounding)                                            \
  inline __half __float2half_##suffix(float x) {                                   \
    return hiprocm::encode_rounded<hiprocm::HalfFormat>(x, hiprocm::Rounding::rounding);  \
  }
HIPROCM_HALF_ROUNDING(rn, kNearest)
HIPROCM_HALF_ROUNDING(rz, kTowardsZero)
HIPROCM_HALF_ROUNDING(rd, kDown)
HIPROCM_HALF_ROUNDING(ru, kUp)
#undef HIPROCM_HALF_ROUNDING

#define HIPROCM_HALF_INTEGER(name, T)                                                      \
  inline __half __##name##2half_rn(T x) { return __half(x); }                      \
  inline T __half2##name##_rn(__half x) {                                          \
    return static_cast<T>(__builtin_rintf(x));                                            \
  }                                                                                       \
  inline T __half2##name##_rz(__half x) { return static_cast<T>(__half2float(x)); } \
  inline T __half2##name##_rd(__half x) {                                          \
    return static_cast<T>(__builtin_floorf(x));                                           \
  }                                                                                       \
  inline T __half2##name##_ru(__half x) { return static_cast<T>(__builtin_ceilf(x)); }
HIPROCM_HALF_INTEGER(short, short)
HIPROCM_HALF_INTEGER(ushort, unsigned short)
HIPROCM_HALF_INTEGER(int, int)
HIPROCM_HALF_INTEGER(uint, unsigned)
HIPROCM_HALF_INTEGER(ll, long long)
HIPROCM_HALF_INTEGER(ull, unsigned long long)
#undef HIPROCM_HALF_INTEGER

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }

#pragma clang force_cuda_host_device end
