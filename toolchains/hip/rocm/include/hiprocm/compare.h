// abs, min, max and the classification of numbers, under their names without a namespace.
#pragma once

#include <math.h>
#include <stdlib.h>

#define HIPROCM_DEVICE static __device__ __forceinline__

HIPROCM_DEVICE int abs(int x) { return x < 0 ? -x : x; }
HIPROCM_DEVICE long abs(long x) { return x < 0 ? -x : x; }
HIPROCM_DEVICE long labs(long x) { return x < 0 ? -x : x; }
HIPROCM_DEVICE long long abs(long long x) { return x < 0 ? -x : x; }
HIPROCM_DEVICE long long llabs(long long x) { return x < 0 ? -x : x; }
HIPROCM_DEVICE float abs(float x) { return __builtin_fabsf(x); }
HIPROCM_DEVICE double abs(double x) { return __builtin_fabs(x); }

#define HIPROCM_TEST(name, T)                                              \
  HIPROCM_DEVICE bool name(T x) { return __builtin_##name(x); }            \
  namespace std {                                                          \
  using ::name;                                                            \
  }
HIPROCM_TEST(isnan, float)
HIPROCM_TEST(isnan, double)
HIPROCM_TEST(isinf, float)
HIPROCM_TEST(isinf, double)
HIPROCM_TEST(isfinite, float)
HIPROCM_TEST(isfinite, double)
HIPROCM_TEST(signbit, float)
HIPROCM_TEST(signbit, double)
#undef HIPROCM_TEST
namespace std {
using ::abs;
}

#undef HIPROCM_DEVICE

#define HIPROCM_MIN_MAX(Result, A, B)                                                   \
  static __host__ __device__ __forceinline__ Result min(A a, B b) {                     \
    return static_cast<Result>(b) < static_cast<Result>(a) ? b : a;                     \
  }                                                                                     \
  static __host__ __device__ __forceinline__ Result max(A a, B b) {                     \
    return static_cast<Result>(a) < static_cast<Result>(b) ? b : a;                     \
  }
HIPROCM_MIN_MAX(int, int, int)
HIPROCM_MIN_MAX(unsigned, unsigned, unsigned)
HIPROCM_MIN_MAX(unsigned, unsigned, int)
HIPROCM_MIN_MAX(unsigned, int, unsigned)
HIPROCM_MIN_MAX(long, long, long)
HIPROCM_MIN_MAX(long, long, int)
HIPROCM_MIN_MAX(long, int, long)
HIPROCM_MIN_MAX(unsigned long, unsigned long, unsigned long)
HIPROCM_MIN_MAX(unsigned long, unsigned long, long)
HIPROCM_MIN_MAX(unsigned long, long, unsigned long)
HIPROCM_MIN_MAX(long long, long long, long long)
HIPROCM_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef HIPROCM_MIN_MAX

// An operand that is not a number is ignored.
#define HIPROCM_FLOAT_MIN_MAX(Result, A, B, suffix)                                     \
  static __host__ __device__ __forceinline__ Result min(A a, B b) {                     \
    return __builtin_fmin##suffix(a, b);                                                \
  }                                                                                     \
  static __host__ __device__ __forceinline__ Result max(A a, B b) {                     \
    return __builtin_fmax##suffix(a, b);                                                \
  }
HIPROCM_FLOAT_MIN_MAX(float, float, float, f)
HIPROCM_FLOAT_MIN_MAX(double, double, double, )
HIPROCM_FLOAT_MIN_MAX(double, double, float, )
HIPROCM_FLOAT_MIN_MAX(double, float, double, )
#undef HIPROCM_FLOAT_MIN_MAX
