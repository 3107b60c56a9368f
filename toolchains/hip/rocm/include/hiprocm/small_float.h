// Numbers of 16 bits over the compiler's own types, and pairs of them. A half calculates in half
// (the processor has the instructions), a bfloat16 in float, rounded once.
#pragma once

#include <hiprocm/small_formats.h>

#pragma clang force_cuda_host_device begin

namespace hiprocm {

template <class Format>
struct SmallFloat;

// What an operator with a small float and a T yields: T if that is wider, else the small float.
template <class T, class Small>
struct Mixed {};
template <class Small>
struct Mixed<float, Small> {
  using type = float;
};
template <class Small>
struct Mixed<double, Small> {
  using type = double;
};
#define HIPROCM_MIXED(T)            \
  template <class Small>           \
  struct Mixed<T, Small> {         \
    using type = Small;            \
  };
HIPROCM_MIXED(bool)
HIPROCM_MIXED(char)
HIPROCM_MIXED(signed char)
HIPROCM_MIXED(unsigned char)
HIPROCM_MIXED(short)
HIPROCM_MIXED(unsigned short)
HIPROCM_MIXED(int)
HIPROCM_MIXED(unsigned)
HIPROCM_MIXED(long)
HIPROCM_MIXED(unsigned long)
HIPROCM_MIXED(long long)
HIPROCM_MIXED(unsigned long long)
#undef HIPROCM_MIXED

#define HIPROCM_ARITHMETIC(op)                                                                  \
  friend SmallFloat operator op(SmallFloat a, SmallFloat b) {                                  \
    return SmallFloat(a.wide() op b.wide());                                                   \
  }                                                                                            \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type>                       \
  friend Result operator op(SmallFloat a, T b) {                                               \
    return Result(static_cast<Result>(a) op static_cast<Result>(b));                           \
  }                                                                                            \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type>                       \
  friend Result operator op(T a, SmallFloat b) {                                               \
    return Result(static_cast<Result>(a) op static_cast<Result>(b));                           \
  }                                                                                            \
  friend SmallFloat& operator op##=(SmallFloat& a, SmallFloat b) { return a = a op b; }

#define HIPROCM_COMPARISON(op, name, unordered_name)                                            \
  friend bool operator op(SmallFloat a, SmallFloat b) { return a.wide() op b.wide(); }         \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type>                       \
  friend bool operator op(SmallFloat a, T b) {                                                 \
    return static_cast<double>(a) op static_cast<double>(b);                                   \
  }                                                                                            \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type>                       \
  friend bool operator op(T a, SmallFloat b) {                                                 \
    return static_cast<double>(a) op static_cast<double>(b);                                   \
  }                                                                                            \
  friend bool name(SmallFloat a, SmallFloat b) { return a.wide() op b.wide(); }                \
  friend bool unordered_name(SmallFloat a, SmallFloat b) {                                     \
    return a.is_nan() || b.is_nan() || a.wide() op b.wide();                                   \
  }

#define HIPROCM_UNARY(name, expression)        \
  friend SmallFloat name(SmallFloat a) {      \
    const float x = a;                        \
    return SmallFloat(expression);            \
  }

/// A number of 16 bits. It converts to and from every arithmetic type; conversions and operators
/// round to nearest, ties to even. HIP's functions on it are found by the type of an argument.
template <class Format>
struct SmallFloat {
  typename Format::Native data;

  SmallFloat() = default;
  SmallFloat(float x) : data(Format::encode(x)) {}
  SmallFloat(double x) : data(Format::encode(narrow_to_odd(x))) {}
  SmallFloat(_Float16 x) : data(Format::encode(static_cast<float>(x))) {}
  SmallFloat(__bf16 x) : data(Format::encode(Bfloat16Format::decode(x))) {}
  template <class T, class = typename Mixed<T, SmallFloat>::type>
  SmallFloat(T x) : SmallFloat(static_cast<double>(x)) {}

  static SmallFloat from_bits(uint16_t bits) {
    SmallFloat result;
    result.data = __builtin_bit_cast(typename Format::Native, bits);
    return result;
  }

  operator float() const { return Format::decode(data); }
  uint16_t bits() const { return __builtin_bit_cast(uint16_t, data); }
  bool is_nan() const { return (bits() & 0x7fff) > Format::kInfinity; }
  bool is_infinite() const { return (bits() & 0x7fff) == Format::kInfinity; }
  // What it calculates in.
  typename Format::Wide wide() const {
    if constexpr (std::is_same<typename Format::Wide, float>::value) {
      return Format::decode(data);
    } else {
      return data;
    }
  }

  SmallFloat operator+() const { return *this; }
  SmallFloat operator-() const { return from_bits(bits() ^ 0x8000); }
  SmallFloat& operator++() { return *this = SmallFloat(Format::decode(data) + 1.0f); }
  SmallFloat& operator--() { return *this = SmallFloat(Format::decode(data) - 1.0f); }

  HIPROCM_ARITHMETIC(+)
  HIPROCM_ARITHMETIC(-)
  HIPROCM_ARITHMETIC(*)
  HIPROCM_ARITHMETIC(/)
  HIPROCM_COMPARISON(==, __heq, __hequ)
  HIPROCM_COMPARISON(!=, __hne, __hneu)
  HIPROCM_COMPARISON(<, __hlt, __hltu)
  HIPROCM_COMPARISON(<=, __hle, __hleu)
  HIPROCM_COMPARISON(>, __hgt, __hgtu)
  HIPROCM_COMPARISON(>=, __hge, __hgeu)

  friend SmallFloat __hadd(SmallFloat a, SmallFloat b) { return a + b; }
  friend SmallFloat __hadd_rn(SmallFloat a, SmallFloat b) { return a + b; }
  friend SmallFloat __hsub(SmallFloat a, SmallFloat b) { return a - b; }
  friend SmallFloat __hsub_rn(SmallFloat a, SmallFloat b) { return a - b; }
  friend SmallFloat __hmul(SmallFloat a, SmallFloat b) { return a * b; }
  friend SmallFloat __hmul_rn(SmallFloat a, SmallFloat b) { return a * b; }
  friend SmallFloat __hdiv(SmallFloat a, SmallFloat b) { return a / b; }
  friend SmallFloat __hfma(SmallFloat a, SmallFloat b, SmallFloat c) {
    return SmallFloat(__builtin_elementwise_fma(a.wide(), b.wide(), c.wide()));
  }
  friend SmallFloat __hneg(SmallFloat a) { return -a; }
  friend SmallFloat __habs(SmallFloat a) { return from_bits(a.bits() & 0x7fff); }

  // The other operand where one is not a number.
  friend SmallFloat __hmax(SmallFloat a, SmallFloat b) {
    return SmallFloat(__builtin_elementwise_maxnum(a.wide(), b.wide()));
  }
  friend SmallFloat __hmin(SmallFloat a, SmallFloat b) {
    return SmallFloat(__builtin_elementwise_minnum(a.wide(), b.wide()));
  }
  friend SmallFloat __hmax_nan(SmallFloat a, SmallFloat b) {
    return a.is_nan() ? a : b.is_nan() ? b : __hmax(a, b);
  }
  friend SmallFloat __hmin_nan(SmallFloat a, SmallFloat b) {
    return a.is_nan() ? a : b.is_nan() ? b : __hmin(a, b);
  }

  friend SmallFloat __hadd_sat(SmallFloat a, SmallFloat b) { return saturate(a + b); }
  friend SmallFloat __hsub_sat(SmallFloat a, SmallFloat b) { return saturate(a - b); }
  friend SmallFloat __hmul_sat(SmallFloat a, SmallFloat b) { return saturate(a * b); }
  friend SmallFloat __hfma_sat(SmallFloat a, SmallFloat b, SmallFloat c) {
    return saturate(__hfma(a, b, c));
  }
  friend bool __hisnan(SmallFloat a) { return a.is_nan(); }
  friend int __hisinf(SmallFloat a) {
    return !a.is_infinite() ? 0 : (a.bits() & 0x8000) != 0 ? -1 : 1;
  }

  HIPROCM_UNARY(hexp, expf(x))
  HIPROCM_UNARY(hexp2, exp2f(x))
  HIPROCM_UNARY(hexp10, exp10f(x))
  HIPROCM_UNARY(hlog, logf(x))
  HIPROCM_UNARY(hlog2, log2f(x))
  HIPROCM_UNARY(hlog10, log10f(x))
  HIPROCM_UNARY(hsin, sinf(x))
  HIPROCM_UNARY(hcos, cosf(x))
  HIPROCM_UNARY(htanh, tanhf(x))
  HIPROCM_UNARY(hsqrt, __builtin_sqrtf(x))
  HIPROCM_UNARY(hrsqrt, 1.0f / __builtin_sqrtf(x))
  HIPROCM_UNARY(hrcp, 1.0f / x)
  HIPROCM_UNARY(hfloor, __builtin_floorf(x))
  HIPROCM_UNARY(hceil, __builtin_ceilf(x))
  HIPROCM_UNARY(htrunc, __builtin_truncf(x))
  HIPROCM_UNARY(hrint, __builtin_rintf(x))

 private:
  static SmallFloat saturate(SmallFloat a) {
    return SmallFloat(__builtin_fminf(__builtin_fmaxf(a, 0.0f), 1.0f));
  }
};

#undef HIPROCM_ARITHMETIC
#undef HIPROCM_COMPARISON
#undef HIPROCM_UNARY

#define HIPROCM_PAIR_BINARY(name, element)                                           \
  friend SmallFloat2 name(SmallFloat2 a, SmallFloat2 b) {                           \
    return {element(a.x, b.x), element(a.y, b.y)};                                  \
  }
#define HIPROCM_PAIR_OPERATOR(op)                                                    \
  friend SmallFloat2 operator op(SmallFloat2 a, SmallFloat2 b) {                    \
    return {a.x op b.x, a.y op b.y};                                                \
  }                                                                                 \
  friend SmallFloat2& operator op##=(SmallFloat2& a, SmallFloat2 b) {               \
    return a = a op b;                                                              \
  }
#define HIPROCM_PAIR_UNARY(name, element) \
  friend SmallFloat2 name(SmallFloat2 a) { return {element(a.x), element(a.y)}; }
#define HIPROCM_PAIR_COMPARISON(op, name, both_name)                                 \
  friend SmallFloat2 name(SmallFloat2 a, SmallFloat2 b) {                           \
    return {Element(a.x op b.x ? 1.0f : 0.0f), Element(a.y op b.y ? 1.0f : 0.0f)};  \
  }                                                                                 \
  friend bool both_name(SmallFloat2 a, SmallFloat2 b) {                             \
    return a.x op b.x && a.y op b.y;                                                \
  }

/// Two small floats in 32 bits.
template <class Format>
struct alignas(4) SmallFloat2 {
  using Element = SmallFloat<Format>;

  Element x, y;

  SmallFloat2() = default;
  SmallFloat2(Element low, Element high) : x(low), y(high) {}

  SmallFloat2 operator-() const { return {-x, -y}; }
  friend bool operator==(SmallFloat2 a, SmallFloat2 b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(SmallFloat2 a, SmallFloat2 b) { return !(a == b); }

  HIPROCM_PAIR_OPERATOR(+)
  HIPROCM_PAIR_OPERATOR(-)
  HIPROCM_PAIR_OPERATOR(*)
  HIPROCM_PAIR_OPERATOR(/)
  HIPROCM_PAIR_BINARY(__hadd2, __hadd)
  HIPROCM_PAIR_BINARY(__hsub2, __hsub)
  HIPROCM_PAIR_BINARY(__hmul2, __hmul)
  HIPROCM_PAIR_BINARY(__h2div, __hdiv)
  HIPROCM_PAIR_BINARY(__hmax2, __hmax)
  HIPROCM_PAIR_BINARY(__hmin2, __hmin)
  friend SmallFloat2 __hfma2(SmallFloat2 a, SmallFloat2 b, SmallFloat2 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
  }
  HIPROCM_PAIR_COMPARISON(==, __heq2, __hbeq2)
  HIPROCM_PAIR_COMPARISON(!=, __hne2, __hbne2)
  HIPROCM_PAIR_COMPARISON(<, __hlt2, __hblt2)
  HIPROCM_PAIR_COMPARISON(<=, __hle2, __hble2)
  HIPROCM_PAIR_COMPARISON(>, __hgt2, __hbgt2)
  HIPROCM_PAIR_COMPARISON(>=, __hge2, __hbge2)
  HIPROCM_PAIR_UNARY(__hneg2, __hneg)
  HIPROCM_PAIR_UNARY(__habs2, __habs)
  HIPROCM_PAIR_UNARY(h2exp, hexp)
  HIPROCM_PAIR_UNARY(h2exp2, hexp2)
  HIPROCM_PAIR_UNARY(h2log, hlog)
  HIPROCM_PAIR_UNARY(h2log2, hlog2)
  HIPROCM_PAIR_UNARY(h2sqrt, hsqrt)
  HIPROCM_PAIR_UNARY(h2rsqrt, hrsqrt)
  HIPROCM_PAIR_UNARY(h2rcp, hrcp)
  HIPROCM_PAIR_UNARY(h2floor, hfloor)
  HIPROCM_PAIR_UNARY(h2ceil, hceil)
  HIPROCM_PAIR_UNARY(h2rint, hrint)

  friend float __low2float(SmallFloat2 a) { return a.x; }
  friend float __high2float(SmallFloat2 a) { return a.y; }
  friend SmallFloat2 __lowhigh2highlow(SmallFloat2 a) { return {a.y, a.x}; }
};

#undef HIPROCM_PAIR_BINARY
#undef HIPROCM_PAIR_OPERATOR
#undef HIPROCM_PAIR_UNARY
#undef HIPROCM_PAIR_COMPARISON

}  // namespace hiprocm

#define HIPROCM_SHUFFLE(name, Where)                                                       \
  template <class Format>                                                                  \
  __device__ inline hiprocm::SmallFloat<Format> name(hiprocm::SmallFloat<Format> value,    \
                                                     Where where, int width = warpSize) {  \
    const int moved = name(static_cast<int>(value.bits()), where, width);                  \
    return hiprocm::SmallFloat<Format>::from_bits(static_cast<uint16_t>(moved));           \
  }                                                                                        \
  template <class Format>                                                                  \
  __device__ inline hiprocm::SmallFloat2<Format> name(hiprocm::SmallFloat2<Format> value,  \
                                                      Where where, int width = warpSize) { \
    const int moved = name(__builtin_bit_cast(int, value), where, width);                  \
    return __builtin_bit_cast(hiprocm::SmallFloat2<Format>, moved);                        \
  }

#pragma clang force_cuda_host_device end

HIPROCM_SHUFFLE(__shfl, int)
HIPROCM_SHUFFLE(__shfl_up, unsigned)
HIPROCM_SHUFFLE(__shfl_down, unsigned)
HIPROCM_SHUFFLE(__shfl_xor, int)
#undef HIPROCM_SHUFFLE
