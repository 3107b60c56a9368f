// Numbers of 16 bits that calculate in float and round once, and pairs of them.
#pragma once

#include <hipcpu/small_formats.h>

namespace hipcpu {

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
#define HIPCPU_MIXED(T)            \
  template <class Small>           \
  struct Mixed<T, Small> {         \
    using type = Small;            \
  };
HIPCPU_MIXED(bool)
HIPCPU_MIXED(char)
HIPCPU_MIXED(signed char)
HIPCPU_MIXED(unsigned char)
HIPCPU_MIXED(short)
HIPCPU_MIXED(unsigned short)
HIPCPU_MIXED(int)
HIPCPU_MIXED(unsigned)
HIPCPU_MIXED(long)
HIPCPU_MIXED(unsigned long)
HIPCPU_MIXED(long long)
HIPCPU_MIXED(unsigned long long)
#undef HIPCPU_MIXED

#define HIPCPU_ARITHMETIC(op)                                                                  \
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

#define HIPCPU_COMPARISON(op, name, unordered_name)                                            \
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

#define HIPCPU_UNARY(name, expression)        \
  friend SmallFloat name(SmallFloat a) {      \
    const float x = a.wide();                 \
    return SmallFloat(expression);            \
  }

/// A number of 16 bits. It converts to and from every arithmetic type; conversions and operators
/// round to nearest, ties to even. HIP's functions on it are found by the type of an argument.
template <class Format>
struct SmallFloat {
  uint16_t data;

  SmallFloat() = default;
  SmallFloat(float x) : data(Format::encode(x)) {}
  SmallFloat(double x) : data(Format::encode(narrow_to_odd(x))) {}
#ifdef __FLT16_MANT_DIG__
  SmallFloat(_Float16 x) : data(Format::encode(static_cast<float>(x))) {}
#endif
  template <class T, class = typename Mixed<T, SmallFloat>::type>
  SmallFloat(T x) : SmallFloat(static_cast<double>(x)) {}

  static SmallFloat from_bits(uint16_t bits) {
    SmallFloat result;
    result.data = bits;
    return result;
  }

  operator float() const { return Format::decode(data); }
  float wide() const { return Format::decode(data); }
  bool is_nan() const { return (data & 0x7fff) > Format::kInfinity; }
  bool is_infinite() const { return (data & 0x7fff) == Format::kInfinity; }

  SmallFloat operator+() const { return *this; }
  SmallFloat operator-() const { return from_bits(data ^ 0x8000); }
  SmallFloat& operator++() { return *this = SmallFloat(wide() + 1.0f); }
  SmallFloat& operator--() { return *this = SmallFloat(wide() - 1.0f); }

  HIPCPU_ARITHMETIC(+)
  HIPCPU_ARITHMETIC(-)
  HIPCPU_ARITHMETIC(*)
  HIPCPU_ARITHMETIC(/)
  HIPCPU_COMPARISON(==, __heq, __hequ)
  HIPCPU_COMPARISON(!=, __hne, __hneu)
  HIPCPU_COMPARISON(<, __hlt, __hltu)
  HIPCPU_COMPARISON(<=, __hle, __hleu)
  HIPCPU_COMPARISON(>, __hgt, __hgtu)
  HIPCPU_COMPARISON(>=, __hge, __hgeu)

  friend SmallFloat __hadd(SmallFloat a, SmallFloat b) { return a + b; }
  friend SmallFloat __hadd_rn(SmallFloat a, SmallFloat b) { return a + b; }
  friend SmallFloat __hsub(SmallFloat a, SmallFloat b) { return a - b; }
  friend SmallFloat __hsub_rn(SmallFloat a, SmallFloat b) { return a - b; }
  friend SmallFloat __hmul(SmallFloat a, SmallFloat b) { return a * b; }
  friend SmallFloat __hmul_rn(SmallFloat a, SmallFloat b) { return a * b; }
  friend SmallFloat __hdiv(SmallFloat a, SmallFloat b) { return a / b; }
  friend SmallFloat __hfma(SmallFloat a, SmallFloat b, SmallFloat c) {
    return from_bits(Format::fma(a.wide(), b.wide(), c.wide()));
  }
  friend SmallFloat __hneg(SmallFloat a) { return -a; }
  friend SmallFloat __habs(SmallFloat a) { return from_bits(a.data & 0x7fff); }

  // The other operand where one is not a number.
  friend SmallFloat __hmax(SmallFloat a, SmallFloat b) {
    return SmallFloat(__builtin_fmaxf(a.wide(), b.wide()));
  }
  friend SmallFloat __hmin(SmallFloat a, SmallFloat b) {
    return SmallFloat(__builtin_fminf(a.wide(), b.wide()));
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
    return !a.is_infinite() ? 0 : (a.data & 0x8000) != 0 ? -1 : 1;
  }

  HIPCPU_UNARY(hexp, expf(x))
  HIPCPU_UNARY(hexp2, exp2f(x))
  HIPCPU_UNARY(hexp10, exp10f(x))
  HIPCPU_UNARY(hlog, logf(x))
  HIPCPU_UNARY(hlog2, log2f(x))
  HIPCPU_UNARY(hlog10, log10f(x))
  HIPCPU_UNARY(hsin, sinf(x))
  HIPCPU_UNARY(hcos, cosf(x))
  HIPCPU_UNARY(htanh, tanhf(x))
  HIPCPU_UNARY(hsqrt, __builtin_sqrtf(x))
  HIPCPU_UNARY(hrsqrt, 1.0f / __builtin_sqrtf(x))
  HIPCPU_UNARY(hrcp, 1.0f / x)
  HIPCPU_UNARY(hfloor, __builtin_floorf(x))
  HIPCPU_UNARY(hceil, __builtin_ceilf(x))
  HIPCPU_UNARY(htrunc, __builtin_truncf(x))
  HIPCPU_UNARY(hrint, __builtin_rintf(x))

 private:
  static SmallFloat saturate(SmallFloat a) { return SmallFloat(__saturatef(a.wide())); }
};

#undef HIPCPU_ARITHMETIC
#undef HIPCPU_COMPARISON
#undef HIPCPU_UNARY

#define HIPCPU_PAIR_BINARY(name, element)                                           \
  friend SmallFloat2 name(SmallFloat2 a, SmallFloat2 b) {                           \
    return {element(a.x, b.x), element(a.y, b.y)};                                  \
  }
#define HIPCPU_PAIR_OPERATOR(op)                                                    \
  friend SmallFloat2 operator op(SmallFloat2 a, SmallFloat2 b) {                    \
    return {a.x op b.x, a.y op b.y};                                                \
  }                                                                                 \
  friend SmallFloat2& operator op##=(SmallFloat2& a, SmallFloat2 b) {               \
    return a = a op b;                                                              \
  }
#define HIPCPU_PAIR_UNARY(name, element) \
  friend SmallFloat2 name(SmallFloat2 a) { return {element(a.x), element(a.y)}; }
#define HIPCPU_PAIR_COMPARISON(op, name, both_name)                                 \
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

  HIPCPU_PAIR_OPERATOR(+)
  HIPCPU_PAIR_OPERATOR(-)
  HIPCPU_PAIR_OPERATOR(*)
  HIPCPU_PAIR_OPERATOR(/)
  HIPCPU_PAIR_BINARY(__hadd2, __hadd)
  HIPCPU_PAIR_BINARY(__hsub2, __hsub)
  HIPCPU_PAIR_BINARY(__hmul2, __hmul)
  HIPCPU_PAIR_BINARY(__h2div, __hdiv)
  HIPCPU_PAIR_BINARY(__hmax2, __hmax)
  HIPCPU_PAIR_BINARY(__hmin2, __hmin)
  friend SmallFloat2 __hfma2(SmallFloat2 a, SmallFloat2 b, SmallFloat2 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
  }
  HIPCPU_PAIR_COMPARISON(==, __heq2, __hbeq2)
  HIPCPU_PAIR_COMPARISON(!=, __hne2, __hbne2)
  HIPCPU_PAIR_COMPARISON(<, __hlt2, __hblt2)
  HIPCPU_PAIR_COMPARISON(<=, __hle2, __hble2)
  HIPCPU_PAIR_COMPARISON(>, __hgt2, __hbgt2)
  HIPCPU_PAIR_COMPARISON(>=, __hge2, __hbge2)
  HIPCPU_PAIR_UNARY(__hneg2, __hneg)
  HIPCPU_PAIR_UNARY(__habs2, __habs)
  HIPCPU_PAIR_UNARY(h2exp, hexp)
  HIPCPU_PAIR_UNARY(h2exp2, hexp2)
  HIPCPU_PAIR_UNARY(h2log, hlog)
  HIPCPU_PAIR_UNARY(h2log2, hlog2)
  HIPCPU_PAIR_UNARY(h2sqrt, hsqrt)
  HIPCPU_PAIR_UNARY(h2rsqrt, hrsqrt)
  HIPCPU_PAIR_UNARY(h2rcp, hrcp)
  HIPCPU_PAIR_UNARY(h2floor, hfloor)
  HIPCPU_PAIR_UNARY(h2ceil, hceil)
  HIPCPU_PAIR_UNARY(h2rint, hrint)

  friend float __low2float(SmallFloat2 a) { return a.x; }
  friend float __high2float(SmallFloat2 a) { return a.y; }
  friend SmallFloat2 __lowhigh2highlow(SmallFloat2 a) { return {a.y, a.x}; }
};

#undef HIPCPU_PAIR_BINARY
#undef HIPCPU_PAIR_OPERATOR
#undef HIPCPU_PAIR_UNARY
#undef HIPCPU_PAIR_COMPARISON

}  // namespace hipcpu
