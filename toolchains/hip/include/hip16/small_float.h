// 16-bit numbers, and pairs of them. The format defines the bits and the type that a number
// calculates in; every result is rounded once.
#pragma once

#include <hip16/formats.h>

HIP16_BEGIN

namespace hip16 {

template <class Format>
struct SmallFloat;

// The result type of an operator on a small float and a T: T if it is wider, else the small float.
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
#define HIP16_MIXED(T)     \
  template <class Small>   \
  struct Mixed<T, Small> { \
    using type = Small;    \
  };
HIP16_MIXED(bool)
HIP16_MIXED(char)
HIP16_MIXED(signed char)
HIP16_MIXED(unsigned char)
HIP16_MIXED(short)
HIP16_MIXED(unsigned short)
HIP16_MIXED(int)
HIP16_MIXED(unsigned)
HIP16_MIXED(long)
HIP16_MIXED(unsigned long)
HIP16_MIXED(long long)
HIP16_MIXED(unsigned long long)
#undef HIP16_MIXED

#define HIP16_ARITHMETIC(op)                                             \
  friend SmallFloat operator op(SmallFloat a, SmallFloat b) {            \
    return SmallFloat(a.wide() op b.wide());                             \
  }                                                                      \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type> \
  friend Result operator op(SmallFloat a, T b) {                         \
    return Result(static_cast<Result>(a) op static_cast<Result>(b));     \
  }                                                                      \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type> \
  friend Result operator op(T a, SmallFloat b) {                         \
    return Result(static_cast<Result>(a) op static_cast<Result>(b));     \
  }                                                                      \
  friend SmallFloat& operator op##=(SmallFloat& a, SmallFloat b) { return a = a op b; }

#define HIP16_COMPARISON(op, name, unordered_name)                                     \
  friend bool operator op(SmallFloat a, SmallFloat b) { return a.wide() op b.wide(); } \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type>               \
  friend bool operator op(SmallFloat a, T b) {                                         \
    return static_cast<double>(a) op static_cast<double>(b);                           \
  }                                                                                    \
  template <class T, class Result = typename Mixed<T, SmallFloat>::type>               \
  friend bool operator op(T a, SmallFloat b) {                                         \
    return static_cast<double>(a) op static_cast<double>(b);                           \
  }                                                                                    \
  friend bool name(SmallFloat a, SmallFloat b) { return a.wide() op b.wide(); }        \
  friend bool unordered_name(SmallFloat a, SmallFloat b) {                             \
    return a.is_nan() || b.is_nan() || a.wide() op b.wide();                           \
  }

#define HIP16_UNARY(name, expression)    \
  friend SmallFloat name(SmallFloat a) { \
    const float x = a;                   \
    return SmallFloat(expression);       \
  }

/// A 16-bit number. It converts to and from every arithmetic type; conversions and operators round
/// to nearest, ties to even. HIP's functions on it are found by the type of an argument.
template <class Format>
struct SmallFloat {
  using Storage = typename Format::Storage;

  Storage data;

  SmallFloat() = default;
  SmallFloat(float x) : data(Format::encode(x)) {}
  SmallFloat(double x) : data(Format::encode(narrow_to_odd(x))) {}
#ifdef __FLT16_MANT_DIG__
  SmallFloat(_Float16 x) : data(Format::encode(static_cast<float>(x))) {}
#endif
#ifdef HIP16_NATIVE_BFLOAT16
  SmallFloat(__bf16 x) : data(Format::encode(Bfloat16Format::decode(x))) {}
#endif
  template <class T, class = typename Mixed<T, SmallFloat>::type>
  SmallFloat(T x) : SmallFloat(static_cast<double>(x)) {}

  static SmallFloat of(Storage data) {
    SmallFloat result;
    result.data = data;
    return result;
  }
  static SmallFloat from_bits(uint16_t bits) { return of(__builtin_bit_cast(Storage, bits)); }

  operator float() const { return Format::decode(data); }
  // The type that it calculates in.
  typename Format::Wide wide() const { return Format::wide(data); }
  uint16_t bits() const { return __builtin_bit_cast(uint16_t, data); }
  bool is_nan() const { return (bits() & 0x7fff) > Format::kInfinity; }
  bool is_infinite() const { return (bits() & 0x7fff) == Format::kInfinity; }

  SmallFloat operator+() const { return *this; }
  SmallFloat operator-() const { return from_bits(bits() ^ 0x8000); }
  SmallFloat& operator++() { return *this = SmallFloat(Format::decode(data) + 1.0f); }
  SmallFloat& operator--() { return *this = SmallFloat(Format::decode(data) - 1.0f); }

  HIP16_ARITHMETIC(+)
  HIP16_ARITHMETIC(-)
  HIP16_ARITHMETIC(*)
  HIP16_ARITHMETIC(/)
  HIP16_COMPARISON(==, __heq, __hequ)
  HIP16_COMPARISON(!=, __hne, __hneu)
  HIP16_COMPARISON(<, __hlt, __hltu)
  HIP16_COMPARISON(<=, __hle, __hleu)
  HIP16_COMPARISON(>, __hgt, __hgtu)
  HIP16_COMPARISON(>=, __hge, __hgeu)

  friend SmallFloat __hadd(SmallFloat a, SmallFloat b) { return a + b; }
  friend SmallFloat __hadd_rn(SmallFloat a, SmallFloat b) { return a + b; }
  friend SmallFloat __hsub(SmallFloat a, SmallFloat b) { return a - b; }
  friend SmallFloat __hsub_rn(SmallFloat a, SmallFloat b) { return a - b; }
  friend SmallFloat __hmul(SmallFloat a, SmallFloat b) { return a * b; }
  friend SmallFloat __hmul_rn(SmallFloat a, SmallFloat b) { return a * b; }
  friend SmallFloat __hdiv(SmallFloat a, SmallFloat b) { return a / b; }
  friend SmallFloat __hfma(SmallFloat a, SmallFloat b, SmallFloat c) {
    return of(Format::fma(a.wide(), b.wide(), c.wide()));
  }
  friend SmallFloat __hneg(SmallFloat a) { return -a; }
  friend SmallFloat __habs(SmallFloat a) { return from_bits(a.bits() & 0x7fff); }

  // The other operand if one is NaN.
  friend SmallFloat __hmax(SmallFloat a, SmallFloat b) {
    return of(Format::larger(a.wide(), b.wide()));
  }
  friend SmallFloat __hmin(SmallFloat a, SmallFloat b) {
    return of(Format::smaller(a.wide(), b.wide()));
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

  HIP16_UNARY(hexp, expf(x))
  HIP16_UNARY(hexp2, exp2f(x))
  HIP16_UNARY(hexp10, exp10f(x))
  HIP16_UNARY(hlog, logf(x))
  HIP16_UNARY(hlog2, log2f(x))
  HIP16_UNARY(hlog10, log10f(x))
  HIP16_UNARY(hsin, sinf(x))
  HIP16_UNARY(hcos, cosf(x))
  HIP16_UNARY(htanh, tanhf(x))
  HIP16_UNARY(hsqrt, __builtin_sqrtf(x))
  HIP16_UNARY(hrsqrt, 1.0f / __builtin_sqrtf(x))
  HIP16_UNARY(hrcp, 1.0f / x)
  HIP16_UNARY(hfloor, __builtin_floorf(x))
  HIP16_UNARY(hceil, __builtin_ceilf(x))
  HIP16_UNARY(htrunc, __builtin_truncf(x))
  HIP16_UNARY(hrint, __builtin_rintf(x))

 private:
  static SmallFloat saturate(SmallFloat a) {
    return SmallFloat(__builtin_fminf(__builtin_fmaxf(a, 0.0f), 1.0f));
  }
};

#undef HIP16_ARITHMETIC
#undef HIP16_COMPARISON
#undef HIP16_UNARY

#define HIP16_PAIR_BINARY(name, element)                  \
  friend SmallFloat2 name(SmallFloat2 a, SmallFloat2 b) { \
    return {element(a.x, b.x), element(a.y, b.y)};        \
  }
#define HIP16_PAIR_OPERATOR(op)                                       \
  friend SmallFloat2 operator op(SmallFloat2 a, SmallFloat2 b) {      \
    return {a.x op b.x, a.y op b.y};                                  \
  }                                                                   \
  friend SmallFloat2& operator op##=(SmallFloat2& a, SmallFloat2 b) { \
    return a = a op b;                                                \
  }
#define HIP16_PAIR_UNARY(name, element) \
  friend SmallFloat2 name(SmallFloat2 a) { return {element(a.x), element(a.y)}; }
#define HIP16_PAIR_COMPARISON(op, name, both_name)                                 \
  friend SmallFloat2 name(SmallFloat2 a, SmallFloat2 b) {                          \
    return {Element(a.x op b.x ? 1.0f : 0.0f), Element(a.y op b.y ? 1.0f : 0.0f)}; \
  }                                                                                \
  friend bool both_name(SmallFloat2 a, SmallFloat2 b) {                            \
    return a.x op b.x && a.y op b.y;                                               \
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

  HIP16_PAIR_OPERATOR(+)
  HIP16_PAIR_OPERATOR(-)
  HIP16_PAIR_OPERATOR(*)
  HIP16_PAIR_OPERATOR(/)
  HIP16_PAIR_BINARY(__hadd2, __hadd)
  HIP16_PAIR_BINARY(__hsub2, __hsub)
  HIP16_PAIR_BINARY(__hmul2, __hmul)
  HIP16_PAIR_BINARY(__h2div, __hdiv)
  HIP16_PAIR_BINARY(__hmax2, __hmax)
  HIP16_PAIR_BINARY(__hmin2, __hmin)
  friend SmallFloat2 __hfma2(SmallFloat2 a, SmallFloat2 b, SmallFloat2 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
  }
  HIP16_PAIR_COMPARISON(==, __heq2, __hbeq2)
  HIP16_PAIR_COMPARISON(!=, __hne2, __hbne2)
  HIP16_PAIR_COMPARISON(<, __hlt2, __hblt2)
  HIP16_PAIR_COMPARISON(<=, __hle2, __hble2)
  HIP16_PAIR_COMPARISON(>, __hgt2, __hbgt2)
  HIP16_PAIR_COMPARISON(>=, __hge2, __hbge2)
  HIP16_PAIR_UNARY(__hneg2, __hneg)
  HIP16_PAIR_UNARY(__habs2, __habs)
  HIP16_PAIR_UNARY(h2exp, hexp)
  HIP16_PAIR_UNARY(h2exp2, hexp2)
  HIP16_PAIR_UNARY(h2log, hlog)
  HIP16_PAIR_UNARY(h2log2, hlog2)
  HIP16_PAIR_UNARY(h2sqrt, hsqrt)
  HIP16_PAIR_UNARY(h2rsqrt, hrsqrt)
  HIP16_PAIR_UNARY(h2rcp, hrcp)
  HIP16_PAIR_UNARY(h2floor, hfloor)
  HIP16_PAIR_UNARY(h2ceil, hceil)
  HIP16_PAIR_UNARY(h2rint, hrint)

  friend float __low2float(SmallFloat2 a) { return a.x; }
  friend float __high2float(SmallFloat2 a) { return a.y; }
  friend SmallFloat2 __lowhigh2highlow(SmallFloat2 a) { return {a.y, a.x}; }
};

#undef HIP16_PAIR_BINARY
#undef HIP16_PAIR_OPERATOR
#undef HIP16_PAIR_UNARY
#undef HIP16_PAIR_COMPARISON

}  // namespace hip16

HIP16_END
