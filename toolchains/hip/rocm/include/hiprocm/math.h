// Mathematics on the device, under the names of the C library, HIP and std. AMD's device library
// (ocml) computes it.
#pragma once

#include <hip/amd_detail/hip_fp16_math_fwd.h>
#include <hip/amd_detail/math_fwd.h>
#include <math.h>
#include <type_traits>

#define HIPROCM_DEVICE static __device__ __forceinline__

// One function for double, float and, as C++ has it, integers.
#define HIPROCM_UNARY(name)                                                            \
  HIPROCM_DEVICE float name##f(float x) { return __ocml_##name##_f32(x); }             \
  HIPROCM_DEVICE float name(float x) { return __ocml_##name##_f32(x); }                \
  HIPROCM_DEVICE double name(double x) { return __ocml_##name##_f64(x); }              \
  template <class T, class = std::enable_if_t<std::is_integral<T>::value>>             \
  HIPROCM_DEVICE double name(T x) {                                                    \
    return __ocml_##name##_f64(static_cast<double>(x));                                \
  }                                                                                    \
  namespace std {                                                                      \
  using ::name;                                                                        \
  using ::name##f;                                                                     \
  }
#define HIPROCM_BINARY(name)                                                           \
  HIPROCM_DEVICE float name##f(float x, float y) { return __ocml_##name##_f32(x, y); } \
  HIPROCM_DEVICE float name(float x, float y) { return __ocml_##name##_f32(x, y); }    \
  HIPROCM_DEVICE double name(double x, double y) { return __ocml_##name##_f64(x, y); } \
  HIPROCM_DEVICE double name(double x, float y) { return __ocml_##name##_f64(x, y); }  \
  HIPROCM_DEVICE double name(float x, double y) { return __ocml_##name##_f64(x, y); }  \
  HIPROCM_DEVICE float name(float x, int y) {                                          \
    return __ocml_##name##_f32(x, static_cast<float>(y));                              \
  }                                                                                    \
  HIPROCM_DEVICE double name(double x, int y) { return __ocml_##name##_f64(x, y); }    \
  namespace std {                                                                      \
  using ::name;                                                                        \
  using ::name##f;                                                                     \
  }

HIPROCM_UNARY(acos)
HIPROCM_UNARY(acosh)
HIPROCM_UNARY(asin)
HIPROCM_UNARY(asinh)
HIPROCM_UNARY(atan)
HIPROCM_UNARY(atanh)
HIPROCM_UNARY(cbrt)
HIPROCM_UNARY(ceil)
HIPROCM_UNARY(cos)
HIPROCM_UNARY(cosh)
HIPROCM_UNARY(erf)
HIPROCM_UNARY(erfc)
HIPROCM_UNARY(exp)
HIPROCM_UNARY(exp2)
HIPROCM_UNARY(expm1)
HIPROCM_UNARY(fabs)
HIPROCM_UNARY(floor)
HIPROCM_UNARY(lgamma)
HIPROCM_UNARY(log)
HIPROCM_UNARY(log10)
HIPROCM_UNARY(log1p)
HIPROCM_UNARY(log2)
HIPROCM_UNARY(logb)
HIPROCM_UNARY(nearbyint)
HIPROCM_UNARY(rint)
HIPROCM_UNARY(round)
HIPROCM_UNARY(sin)
HIPROCM_UNARY(sinh)
HIPROCM_UNARY(sqrt)
HIPROCM_UNARY(tan)
HIPROCM_UNARY(tanh)
HIPROCM_UNARY(tgamma)
HIPROCM_UNARY(trunc)
HIPROCM_BINARY(atan2)
HIPROCM_BINARY(copysign)
HIPROCM_BINARY(fdim)
HIPROCM_BINARY(fmax)
HIPROCM_BINARY(fmin)
HIPROCM_BINARY(fmod)
HIPROCM_BINARY(hypot)
HIPROCM_BINARY(nextafter)
HIPROCM_BINARY(pow)
HIPROCM_BINARY(remainder)

#undef HIPROCM_UNARY
#undef HIPROCM_BINARY

// HIP's own names, most of which the C library lacks.
#define HIPROCM_EXTRA(name, ocml)                                             \
  HIPROCM_DEVICE float name##f(float x) { return __ocml_##ocml##_f32(x); }    \
  HIPROCM_DEVICE double name(double x) { return __ocml_##ocml##_f64(x); }
HIPROCM_EXTRA(cospi, cospi)
HIPROCM_EXTRA(cyl_bessel_i0, i0)
HIPROCM_EXTRA(cyl_bessel_i1, i1)
HIPROCM_EXTRA(erfcinv, erfcinv)
HIPROCM_EXTRA(erfcx, erfcx)
HIPROCM_EXTRA(erfinv, erfinv)
HIPROCM_EXTRA(exp10, exp10)
HIPROCM_EXTRA(j0, j0)
HIPROCM_EXTRA(j1, j1)
HIPROCM_EXTRA(normcdf, ncdf)
HIPROCM_EXTRA(normcdfinv, ncdfinv)
HIPROCM_EXTRA(rcbrt, rcbrt)
HIPROCM_EXTRA(rsqrt, rsqrt)
HIPROCM_EXTRA(sinpi, sinpi)
HIPROCM_EXTRA(y0, y0)
HIPROCM_EXTRA(y1, y1)
#undef HIPROCM_EXTRA
HIPROCM_DEVICE float rsqrt(float x) { return __ocml_rsqrt_f32(x); }

HIPROCM_DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
HIPROCM_DEVICE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
HIPROCM_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
HIPROCM_DEVICE float ldexpf(float x, int n) { return __builtin_amdgcn_ldexpf(x, n); }
HIPROCM_DEVICE float ldexp(float x, int n) { return __builtin_amdgcn_ldexpf(x, n); }
HIPROCM_DEVICE double ldexp(double x, int n) { return __builtin_amdgcn_ldexp(x, n); }
HIPROCM_DEVICE float scalbnf(float x, int n) { return __ocml_scalbn_f32(x, n); }
HIPROCM_DEVICE double scalbn(double x, int n) { return __ocml_scalbn_f64(x, n); }
HIPROCM_DEVICE int ilogbf(float x) { return __ocml_ilogb_f32(x); }
HIPROCM_DEVICE int ilogb(double x) { return __ocml_ilogb_f64(x); }
HIPROCM_DEVICE float rhypotf(float x, float y) { return __ocml_rhypot_f32(x, y); }
HIPROCM_DEVICE double rhypot(double x, double y) { return __ocml_rhypot_f64(x, y); }
HIPROCM_DEVICE float norm3df(float x, float y, float z) { return __ocml_len3_f32(x, y, z); }
HIPROCM_DEVICE double norm3d(double x, double y, double z) { return __ocml_len3_f64(x, y, z); }
HIPROCM_DEVICE float rnorm3df(float x, float y, float z) { return __ocml_rlen3_f32(x, y, z); }
HIPROCM_DEVICE float powif(float x, int n) { return __ocml_pown_f32(x, n); }
HIPROCM_DEVICE double powi(double x, int n) { return __ocml_pown_f64(x, n); }

HIPROCM_DEVICE long lrintf(float x) { return static_cast<long>(__builtin_rintf(x)); }
HIPROCM_DEVICE long lrint(double x) { return static_cast<long>(__builtin_rint(x)); }
HIPROCM_DEVICE long lroundf(float x) { return static_cast<long>(__ocml_round_f32(x)); }
HIPROCM_DEVICE long lround(double x) { return static_cast<long>(__ocml_round_f64(x)); }
HIPROCM_DEVICE long long llrintf(float x) { return static_cast<long long>(__builtin_rintf(x)); }
HIPROCM_DEVICE long long llroundf(float x) { return static_cast<long long>(__ocml_round_f32(x)); }

// ocml writes second results to private memory only.
#define HIPROCM_TWO_RESULTS(name, T, suffix, ocml)                        \
  HIPROCM_DEVICE void name##suffix(T x, T* sine, T* cosine) {             \
    T second;                                                             \
    *sine = ocml(x, (__attribute__((address_space(5))) T*)&second);       \
    *cosine = second;                                                     \
  }
HIPROCM_TWO_RESULTS(sincos, float, f, __ocml_sincos_f32)
HIPROCM_TWO_RESULTS(sincos, double, , __ocml_sincos_f64)
HIPROCM_TWO_RESULTS(sincospi, float, f, __ocml_sincospi_f32)
HIPROCM_TWO_RESULTS(sincospi, double, , __ocml_sincospi_f64)
#undef HIPROCM_TWO_RESULTS

#define HIPROCM_SPLIT(name, T, Second, suffix, ocml)                            \
  HIPROCM_DEVICE T name##suffix(T x, Second* part) {                            \
    Second second;                                                              \
    const T first = ocml(x, (__attribute__((address_space(5))) Second*)&second); \
    *part = second;                                                             \
    return first;                                                               \
  }
HIPROCM_SPLIT(frexp, float, int, f, __ocml_frexp_f32)
HIPROCM_SPLIT(frexp, double, int, , __ocml_frexp_f64)
HIPROCM_SPLIT(modf, float, float, f, __ocml_modf_f32)
HIPROCM_SPLIT(modf, double, double, , __ocml_modf_f64)
#undef HIPROCM_SPLIT

// The fast variants: one instruction of the processor and a factor.
HIPROCM_DEVICE float __expf(float x) { return __ocml_native_exp_f32(x); }
HIPROCM_DEVICE float __exp10f(float x) { return __ocml_native_exp10_f32(x); }
HIPROCM_DEVICE float __logf(float x) { return __ocml_native_log_f32(x); }
HIPROCM_DEVICE float __log2f(float x) { return __ocml_native_log2_f32(x); }
HIPROCM_DEVICE float __log10f(float x) { return __ocml_native_log10_f32(x); }
HIPROCM_DEVICE float __sinf(float x) { return __ocml_native_sin_f32(x); }
HIPROCM_DEVICE float __cosf(float x) { return __ocml_native_cos_f32(x); }
HIPROCM_DEVICE float __tanf(float x) { return __sinf(x) * __builtin_amdgcn_rcpf(__cosf(x)); }
HIPROCM_DEVICE float __powf(float x, float y) { return __builtin_exp2f(y * __log2f(x)); }
HIPROCM_DEVICE void __sincosf(float x, float* sine, float* cosine) {
  *sine = __sinf(x);
  *cosine = __cosf(x);
}
HIPROCM_DEVICE float fdividef(float x, float y) { return x / y; }
HIPROCM_DEVICE float __fdividef(float x, float y) { return x * __builtin_amdgcn_rcpf(y); }
HIPROCM_DEVICE float __saturatef(float x) { return __builtin_amdgcn_fmed3f(x, 0.0f, 1.0f); }
HIPROCM_DEVICE float __frcp_rn(float x) { return 1.0f / x; }
HIPROCM_DEVICE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
HIPROCM_DEVICE float __frsqrt_rn(float x) { return __builtin_amdgcn_rsqf(x); }
HIPROCM_DEVICE float __fdiv_rn(float x, float y) { return x / y; }
HIPROCM_DEVICE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
HIPROCM_DEVICE double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
HIPROCM_DEVICE double __ddiv_rn(double x, double y) { return x / y; }
HIPROCM_DEVICE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

// One rounding each: ocml's functions are never fused into an fma.
HIPROCM_DEVICE float __fadd_rn(float x, float y) { return __ocml_add_rte_f32(x, y); }
HIPROCM_DEVICE float __fsub_rn(float x, float y) { return __ocml_sub_rte_f32(x, y); }
HIPROCM_DEVICE float __fmul_rn(float x, float y) { return __ocml_mul_rte_f32(x, y); }
HIPROCM_DEVICE double __dadd_rn(double x, double y) { return __ocml_add_rte_f64(x, y); }
HIPROCM_DEVICE double __dsub_rn(double x, double y) { return __ocml_sub_rte_f64(x, y); }
HIPROCM_DEVICE double __dmul_rn(double x, double y) { return __ocml_mul_rte_f64(x, y); }

#undef HIPROCM_DEVICE

#include <hiprocm/compare.h>
