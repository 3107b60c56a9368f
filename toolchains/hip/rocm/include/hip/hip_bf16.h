// bfloat16: __hip_bfloat16, __hip_bfloat162, and HIP's functions on them.
#pragma once

#include <hip/hip_runtime.h>
#include <hiprocm/small_atomics.h>

#pragma clang force_cuda_host_device begin

using __hip_bfloat16 = hiprocm::SmallFloat<hiprocm::Bfloat16Format>;
using __hip_bfloat162 = hiprocm::SmallFloat2<hiprocm::Bfloat16Format>;

inline __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
inline __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
inline float __bfloat162float(__hip_bfloat16 x) { return x; }
inline __hip_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __hip_bfloat16::from_bits(bits);
}
inline __hip_bfloat16 __short_as_bfloat16(short bits) {
  return __hip_bfloat16::from_bits(static_cast<uint16_t>(bits));
}
inline unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.bits(); }
inline short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.bits()); }

#define HIPROCM_BFLOAT16_ROUNDING(suffix, rounding)                                        \
  inline __hip_bfloat16 __float2bfloat16_##suffix(float x) {                       \
    return hiprocm::encode_rounded<hiprocm::Bfloat16Format>(x, hiprocm::Rounding::rounding); \
  }
HIPROCM_BFLOAT16_ROUNDING(rn, kNearest)
HIPROCM_BFLOAT16_ROUNDING(rz, kTowardsZero)
HIPROCM_BFLOAT16_ROUNDING(rd, kDown)
HIPROCM_BFLOAT16_ROUNDING(ru, kUp)
#undef HIPROCM_BFLOAT16_ROUNDING

inline __hip_bfloat16 __int2bfloat16_rn(int x) { return __hip_bfloat16(x); }
inline __hip_bfloat16 __uint2bfloat16_rn(unsigned x) { return __hip_bfloat16(x); }
inline int __bfloat162int_rn(__hip_bfloat16 x) {
  return static_cast<int>(__builtin_rintf(x));
}
inline int __bfloat162int_rz(__hip_bfloat16 x) {
  return static_cast<int>(__bfloat162float(x));
}

inline __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
inline __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) {
  return {x, y};
}
inline __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
inline __hip_bfloat162 __float2bfloat162_rn(float x) {
  return {__hip_bfloat16(x), __hip_bfloat16(x)};
}
inline __hip_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__hip_bfloat16(x), __hip_bfloat16(y)};
}
inline __hip_bfloat162 __float22bfloat162_rn(float2 v) {
  return {__hip_bfloat16(v.x), __hip_bfloat16(v.y)};
}
inline float2 __bfloat1622float2(__hip_bfloat162 v) {
  return {__bfloat162float(v.x), __bfloat162float(v.y)};
}
inline __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
inline __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
inline __hip_bfloat162 __low2bfloat162(__hip_bfloat162 v) { return {v.x, v.x}; }
inline __hip_bfloat162 __high2bfloat162(__hip_bfloat162 v) { return {v.y, v.y}; }

#pragma clang force_cuda_host_device end
