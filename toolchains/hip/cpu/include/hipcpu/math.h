// Mathematics under HIP's names, computed by the host's libm: fast variants are as accurate here
// as the others.
#pragma once

#include <hipcpu/platform.h>
#if __has_include(<bits/c++config.h>)
// libstdc++'s special functions of C++17 cost 0.2 s in every <math.h>.
#include <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
#include <math.h>

namespace hipcpu {

HIPCPU_INLINE float rsqrt_float(float x) { return 1.0f / __builtin_sqrtf(x); }
HIPCPU_INLINE double rsqrt_double(double x) { return 1.0 / __builtin_sqrt(x); }
HIPCPU_INLINE float rsqrt_any(float x) { return rsqrt_float(x); }
HIPCPU_INLINE double rsqrt_any(double x) { return rsqrt_double(x); }

}  // namespace hipcpu

// Macros where the C library may declare the same name itself.
#define rsqrtf(x) ::hipcpu::rsqrt_float(x)
#define rsqrt(x) ::hipcpu::rsqrt_any(x)
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __tanhf(x) tanhf(x)
#define __sincosf(x, sine, cosine) sincosf(x, sine, cosine)

HIPCPU_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
HIPCPU_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
HIPCPU_INLINE float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
HIPCPU_INLINE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
HIPCPU_INLINE float norm3df(float x, float y, float z) {
  return __builtin_sqrtf(x * x + y * y + z * z);
}
HIPCPU_INLINE double norm3d(double x, double y, double z) {
  return __builtin_sqrt(x * x + y * y + z * z);
}
HIPCPU_INLINE float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
HIPCPU_INLINE float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
HIPCPU_INLINE double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }

// The argument is reduced first: x is exact where x * pi is not.
HIPCPU_INLINE double hipcpu_sinpi(double x) {
  const double turn = x - 2.0 * __builtin_floor(x * 0.5);
  const double half_turn = turn > 1.0 ? turn - 1.0 : turn;
  const double sine =
      half_turn == 0.0 || half_turn == 1.0 ? 0.0 : ::sin(half_turn * 3.14159265358979324);
  return turn > 1.0 ? -sine : sine;
}
HIPCPU_INLINE double hipcpu_cospi(double x) { return hipcpu_sinpi(x + 0.5); }
#define sinpif(x) static_cast<float>(hipcpu_sinpi(x))
#define cospif(x) static_cast<float>(hipcpu_cospi(x))
#define sinpi(x) hipcpu_sinpi(x)
#define cospi(x) hipcpu_cospi(x)
HIPCPU_INLINE void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}

HIPCPU_INLINE float fdividef(float x, float y) { return x / y; }
HIPCPU_INLINE float __fdividef(float x, float y) { return x / y; }
HIPCPU_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
HIPCPU_INLINE float __frcp_rn(float x) { return 1.0f / x; }
HIPCPU_INLINE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
HIPCPU_INLINE float __frsqrt_rn(float x) { return 1.0f / __builtin_sqrtf(x); }
HIPCPU_INLINE float __fdiv_rn(float x, float y) { return x / y; }
HIPCPU_INLINE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
HIPCPU_INLINE double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
HIPCPU_INLINE double __ddiv_rn(double x, double y) { return x / y; }
HIPCPU_INLINE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

// One rounding each: the barrier keeps the compiler from fusing the result into an fma.
namespace hipcpu {
template <class T>
HIPCPU_INLINE T rounded(T value) {
  volatile T stored = value;
  return stored;
}
}  // namespace hipcpu
HIPCPU_INLINE float __fadd_rn(float x, float y) { return hipcpu::rounded(x + y); }
HIPCPU_INLINE float __fsub_rn(float x, float y) { return hipcpu::rounded(x - y); }
HIPCPU_INLINE float __fmul_rn(float x, float y) { return hipcpu::rounded(x * y); }
HIPCPU_INLINE double __dadd_rn(double x, double y) { return hipcpu::rounded(x + y); }
HIPCPU_INLINE double __dsub_rn(double x, double y) { return hipcpu::rounded(x - y); }
HIPCPU_INLINE double __dmul_rn(double x, double y) { return hipcpu::rounded(x * y); }

#define __builtin_amdgcn_rcpf(x) (1.0f / (x))
#define __builtin_amdgcn_rsqf(x) ::hipcpu::rsqrt_float(x)
#define __builtin_amdgcn_sqrtf(x) __builtin_sqrtf(x)
#define __builtin_amdgcn_exp2f(x) exp2f(x)
#define __builtin_amdgcn_logf(x) log2f(x)
#define __builtin_amdgcn_fmed3f(x, y, z) \
  __builtin_fmaxf(__builtin_fminf(x, y), __builtin_fminf(__builtin_fmaxf(x, y), z))

#define HIPCPU_MIN_MAX(result, A, B)                                                          \
  HIPCPU_INLINE result min(A a, B b) {                                                        \
    return static_cast<result>(b) < static_cast<result>(a) ? b : a;                           \
  }                                                                                           \
  HIPCPU_INLINE result max(A a, B b) {                                                        \
    return static_cast<result>(a) < static_cast<result>(b) ? b : a;                           \
  }
HIPCPU_MIN_MAX(int, int, int)
HIPCPU_MIN_MAX(unsigned, unsigned, unsigned)
HIPCPU_MIN_MAX(unsigned, unsigned, int)
HIPCPU_MIN_MAX(unsigned, int, unsigned)
HIPCPU_MIN_MAX(long, long, long)
HIPCPU_MIN_MAX(long, long, int)
HIPCPU_MIN_MAX(long, int, long)
HIPCPU_MIN_MAX(unsigned long, unsigned long, unsigned long)
HIPCPU_MIN_MAX(unsigned long, unsigned long, long)
HIPCPU_MIN_MAX(unsigned long, long, unsigned long)
HIPCPU_MIN_MAX(long long, long long, long long)
HIPCPU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef HIPCPU_MIN_MAX

// A NaN operand is ignored, as on the device.
#define HIPCPU_FLOAT_MIN_MAX(T, A, B, suffix)                                  \
  HIPCPU_INLINE T min(A a, B b) { return __builtin_fmin##suffix(a, b); }       \
  HIPCPU_INLINE T max(A a, B b) { return __builtin_fmax##suffix(a, b); }
HIPCPU_FLOAT_MIN_MAX(float, float, float, f)
HIPCPU_FLOAT_MIN_MAX(double, double, double, )
HIPCPU_FLOAT_MIN_MAX(double, double, float, )
HIPCPU_FLOAT_MIN_MAX(double, float, double, )
#undef HIPCPU_FLOAT_MIN_MAX
