// Integer intrinsics, reinterpretation of bits, conversions with a named rounding, clocks.
#pragma once

#include <hipcpu/math.h>
#include <hipcpu/wave.h>

HIPCPU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
HIPCPU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
HIPCPU_INLINE int __clz(int x) { return x != 0 ? __builtin_clz(x) : 32; }
HIPCPU_INLINE int __clzll(long long x) { return x != 0 ? __builtin_clzll(x) : 64; }
HIPCPU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
HIPCPU_INLINE int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
HIPCPU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
HIPCPU_INLINE int __ffsll(unsigned long long x) {
  return __builtin_ffsll(static_cast<long long>(x));
}
HIPCPU_INLINE unsigned long long __brevll(unsigned long long x) {
  x = (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
  x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
  x = (x & 0x0f0f0f0f0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0f);
  return __builtin_bswap64(x);
}
HIPCPU_INLINE unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }

HIPCPU_INLINE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
HIPCPU_INLINE unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xffffff) * (y & 0xffffff);
}
HIPCPU_INLINE int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<long long>(x) * y >> 32);
}
HIPCPU_INLINE unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
HIPCPU_INLINE long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
HIPCPU_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
HIPCPU_INLINE unsigned __sad(int x, int y, unsigned z) {
  return (x < y ? static_cast<unsigned>(y) - x : static_cast<unsigned>(x) - y) + z;
}
HIPCPU_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return (x < y ? y - x : x - y) + z;
}
HIPCPU_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned from = selector >> 4 * i & 7;
    result |= static_cast<unsigned>(bytes >> 8 * from & 0xff) << 8 * i;
  }
  return result;
}
HIPCPU_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
HIPCPU_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}

HIPCPU_INLINE int __float_as_int(float x) { return hipcpu::from_bits<int>(hipcpu::to_bits(x)); }
HIPCPU_INLINE unsigned __float_as_uint(float x) {
  return hipcpu::from_bits<unsigned>(hipcpu::to_bits(x));
}
HIPCPU_INLINE float __int_as_float(int x) { return hipcpu::from_bits<float>(hipcpu::to_bits(x)); }
HIPCPU_INLINE float __uint_as_float(unsigned x) {
  return hipcpu::from_bits<float>(hipcpu::to_bits(x));
}
HIPCPU_INLINE long long __double_as_longlong(double x) {
  return hipcpu::from_bits<long long>(hipcpu::to_bits(x));
}
HIPCPU_INLINE double __longlong_as_double(long long x) {
  return hipcpu::from_bits<double>(hipcpu::to_bits(x));
}
HIPCPU_INLINE int __double2hiint(double x) { return static_cast<int>(hipcpu::to_bits(x) >> 32); }
HIPCPU_INLINE int __double2loint(double x) { return static_cast<int>(hipcpu::to_bits(x)); }
HIPCPU_INLINE double __hiloint2double(int high, int low) {
  return hipcpu::from_bits<double>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 |
                                   static_cast<uint32_t>(low));
}

// rn: nearest, ties to even; rz: towards zero; rd: down; ru: up.
#define HIPCPU_TO_INTEGER(from, T, to, result)                                              \
  HIPCPU_INLINE result __##from##2##to##_rn(T x) {                                          \
    return static_cast<result>(__builtin_rint(x));                                          \
  }                                                                                         \
  HIPCPU_INLINE result __##from##2##to##_rz(T x) { return static_cast<result>(x); }         \
  HIPCPU_INLINE result __##from##2##to##_rd(T x) {                                          \
    return static_cast<result>(__builtin_floor(x));                                         \
  }                                                                                         \
  HIPCPU_INLINE result __##from##2##to##_ru(T x) { return static_cast<result>(__builtin_ceil(x)); }
HIPCPU_TO_INTEGER(float, float, int, int)
HIPCPU_TO_INTEGER(float, float, uint, unsigned)
HIPCPU_TO_INTEGER(float, float, ll, long long)
HIPCPU_TO_INTEGER(float, float, ull, unsigned long long)
HIPCPU_TO_INTEGER(double, double, int, int)
HIPCPU_TO_INTEGER(double, double, uint, unsigned)
HIPCPU_TO_INTEGER(double, double, ll, long long)
HIPCPU_TO_INTEGER(double, double, ull, unsigned long long)
#undef HIPCPU_TO_INTEGER
HIPCPU_INLINE float __int2float_rn(int x) { return static_cast<float>(x); }
HIPCPU_INLINE float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
HIPCPU_INLINE float __ll2float_rn(long long x) { return static_cast<float>(x); }
HIPCPU_INLINE float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
HIPCPU_INLINE double __int2double_rn(int x) { return x; }
HIPCPU_INLINE double __ll2double_rn(long long x) { return static_cast<double>(x); }
HIPCPU_INLINE float __double2float_rn(double x) { return static_cast<float>(x); }

template <class T>
HIPCPU_INLINE T __ldg(const T* address) {
  return *address;
}
template <class T>
HIPCPU_INLINE T __ldcs(const T* address) {
  return *address;
}
template <class T>
HIPCPU_INLINE T __ldcg(const T* address) {
  return *address;
}
template <class T>
HIPCPU_INLINE void __stcs(T* address, hipcpu::Scalar<T> value) {
  *address = value;
}
#ifndef __clang__
#define __builtin_nontemporal_load(address) (*(address))
#define __builtin_nontemporal_store(value, address) ((void)(*(address) = (value)))
#endif

/// Nanoseconds of the host's monotonic clock.
extern "C" long long hipcpu_clock() noexcept;
HIPCPU_INLINE long long clock64() { return hipcpu_clock(); }
HIPCPU_INLINE long long wall_clock64() { return hipcpu_clock(); }
