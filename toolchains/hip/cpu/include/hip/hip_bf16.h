// bfloat16: __hip_bfloat16, __hip_bfloat162, and HIP's functions on them.
#pragma once

#include <hip/hip_runtime.h>
#include <hipcpu/small_float.h>

using __hip_bfloat16 = hipcpu::SmallFloat<hipcpu::Bfloat16Format>;
using __hip_bfloat162 = hipcpu::SmallFloat2<hipcpu::Bfloat16Format>;

HIPCPU_INLINE __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
HIPCPU_INLINE __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
HIPCPU_INLINE float __bfloat162float(__hip_bfloat16 x) { return x; }
HIPCPU_INLINE __hip_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __hip_bfloat16::from_bits(bits);
}
HIPCPU_INLINE __hip_bfloat16 __short_as_bfloat16(short bits) {
  return __hip_bfloat16::from_bits(static_cast<uint16_t>(bits));
}
HIPCPU_INLINE unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.data; }
HIPCPU_INLINE short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.data); }

#define HIPCPU_BFLOAT16_ROUNDING(suffix, rounding)                                        \
  HIPCPU_INLINE __hip_bfloat16 __float2bfloat16_##suffix(float x) {                       \
    return __hip_bfloat16::from_bits(                                                     \
        hipcpu::encode_rounded<hipcpu::Bfloat16Format>(x, hipcpu::Rounding::rounding));   \
  }
HIPCPU_BFLOAT16_ROUNDING(rn, kNearest)
HIPCPU_BFLOAT16_ROUNDING(rz, kTowardsZero)
HIPCPU_BFLOAT16_ROUNDING(rd, kDown)
HIPCPU_BFLOAT16_ROUNDING(ru, kUp)
#undef HIPCPU_BFLOAT16_ROUNDING

HIPCPU_INLINE __hip_bfloat16 __int2bfloat16_rn(int x) { return __hip_bfloat16(x); }
HIPCPU_INLINE __hip_bfloat16 __uint2bfloat16_rn(unsigned x) { return __hip_bfloat16(x); }
HIPCPU_INLINE int __bfloat162int_rn(__hip_bfloat16 x) {
  return static_cast<int>(__builtin_rintf(x));
}
HIPCPU_INLINE int __bfloat162int_rz(__hip_bfloat16 x) {
  return static_cast<int>(__bfloat162float(x));
}

HIPCPU_INLINE __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
HIPCPU_INLINE __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) {
  return {x, y};
}
HIPCPU_INLINE __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
HIPCPU_INLINE __hip_bfloat162 __float2bfloat162_rn(float x) {
  return {__hip_bfloat16(x), __hip_bfloat16(x)};
}
HIPCPU_INLINE __hip_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__hip_bfloat16(x), __hip_bfloat16(y)};
}
HIPCPU_INLINE __hip_bfloat162 __float22bfloat162_rn(float2 v) {
  return {__hip_bfloat16(v.x), __hip_bfloat16(v.y)};
}
HIPCPU_INLINE float2 __bfloat1622float2(__hip_bfloat162 v) {
  return {__bfloat162float(v.x), __bfloat162float(v.y)};
}
HIPCPU_INLINE __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
HIPCPU_INLINE __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
HIPCPU_INLINE __hip_bfloat162 __low2bfloat162(__hip_bfloat162 v) { return {v.x, v.x}; }
HIPCPU_INLINE __hip_bfloat162 __high2bfloat162(__hip_bfloat162 v) { return {v.y, v.y}; }
