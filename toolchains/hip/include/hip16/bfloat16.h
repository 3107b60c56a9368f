// bfloat16: __hip_bfloat16, __hip_bfloat162, and HIP's functions on them.
#pragma once

#include <hip16/small_float.h>

HIP16_BEGIN

using __hip_bfloat16 = hip16::SmallFloat<hip16::Bfloat16Format>;
using __hip_bfloat162 = hip16::SmallFloat2<hip16::Bfloat16Format>;

HIP16_INLINE __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
HIP16_INLINE __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
HIP16_INLINE float __bfloat162float(__hip_bfloat16 x) { return x; }
HIP16_INLINE __hip_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __hip_bfloat16::from_bits(bits);
}
HIP16_INLINE __hip_bfloat16 __short_as_bfloat16(short bits) {
  return __hip_bfloat16::from_bits(static_cast<uint16_t>(bits));
}
HIP16_INLINE unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.bits(); }
HIP16_INLINE short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.bits()); }

#define HIP16_BFLOAT16_ROUNDING(suffix, rounding)                                    \
  HIP16_INLINE __hip_bfloat16 __float2bfloat16_##suffix(float x) {                   \
    return __hip_bfloat16::of(                                                       \
        hip16::encode_rounded<hip16::Bfloat16Format>(x, hip16::Rounding::rounding)); \
  }
HIP16_BFLOAT16_ROUNDING(rn, kNearest)
HIP16_BFLOAT16_ROUNDING(rz, kTowardsZero)
HIP16_BFLOAT16_ROUNDING(rd, kDown)
HIP16_BFLOAT16_ROUNDING(ru, kUp)
#undef HIP16_BFLOAT16_ROUNDING

HIP16_INLINE __hip_bfloat16 __int2bfloat16_rn(int x) { return __hip_bfloat16(x); }
HIP16_INLINE __hip_bfloat16 __uint2bfloat16_rn(unsigned x) { return __hip_bfloat16(x); }
HIP16_INLINE int __bfloat162int_rn(__hip_bfloat16 x) {
  return static_cast<int>(__builtin_rintf(x));
}
HIP16_INLINE int __bfloat162int_rz(__hip_bfloat16 x) {
  return static_cast<int>(__bfloat162float(x));
}

HIP16_INLINE __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
HIP16_INLINE __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) {
  return {x, y};
}
HIP16_INLINE __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
HIP16_INLINE __hip_bfloat162 __float2bfloat162_rn(float x) {
  return {__hip_bfloat16(x), __hip_bfloat16(x)};
}
HIP16_INLINE __hip_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__hip_bfloat16(x), __hip_bfloat16(y)};
}
HIP16_INLINE __hip_bfloat162 __float22bfloat162_rn(float2 v) {
  return {__hip_bfloat16(v.x), __hip_bfloat16(v.y)};
}
HIP16_INLINE float2 __bfloat1622float2(__hip_bfloat162 v) {
  return {__bfloat162float(v.x), __bfloat162float(v.y)};
}
HIP16_INLINE __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
HIP16_INLINE __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
HIP16_INLINE __hip_bfloat162 __low2bfloat162(__hip_bfloat162 v) { return {v.x, v.x}; }
HIP16_INLINE __hip_bfloat162 __high2bfloat162(__hip_bfloat162 v) { return {v.y, v.y}; }

HIP16_END
