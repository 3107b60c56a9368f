// Conversions between floating-point formats, and between these and 128-bit integers.
#include "number.h"

namespace {

template <class To, class From, class Value>
auto converted(Value value) {
  return To::pack(From::unpack(value));
}

template <class To>
auto from_integer(Signed value) {
  const Wide magnitude = value < 0 ? -static_cast<Wide>(value) : static_cast<Wide>(value);
  return To::pack(normalised(value < 0, 127, magnitude));
}

template <class To>
auto from_unsigned(Wide value) {
  return To::pack(normalised(false, 127, value));
}

// Rounds towards zero. A number beyond the integer's range is undefined; here it gives the nearest
// integer in range.
template <class From, class Integer, class Value>
Integer to_integer(Value value) {
  constexpr bool kSigned = static_cast<Integer>(-1) < 0;
  constexpr int kBits = 8 * sizeof(Integer) - kSigned;
  constexpr Wide kLargest = ~static_cast<Wide>(0) >> (128 - kBits);
  const Number number = From::unpack(value);
  const bool negative = number.negative;
  if (number.kind == Kind::kZero || number.kind == Kind::kNan) return 0;
  if (number.kind == Kind::kFinite && number.exponent < 0) return 0;
  if (negative && !kSigned) return 0;
  Wide magnitude = kLargest + negative;
  if (number.kind == Kind::kFinite && number.exponent < kBits) {
    magnitude = number.significand >> (127 - number.exponent);
  }
  return static_cast<Integer>(negative ? -magnitude : magnitude);
}

}  // namespace

#define CONVERSION(name, To, From) \
  extern "C" decltype(To::pack({})) name(decltype(From::pack({})) x) { return converted<To, From>(x); }
#define INTEGERS(format, Format)                                                              \
  extern "C" {                                                                                \
  decltype(Format::pack({})) __floatti##format(Signed x) { return from_integer<Format>(x); }  \
  decltype(Format::pack({})) __floatunti##format(Wide x) { return from_unsigned<Format>(x); } \
  }
#define TO_INTEGERS(format, Format)                                          \
  extern "C" {                                                               \
  Signed __fix##format##ti(decltype(Format::pack({})) x) {                   \
    return to_integer<Format, Signed>(x);                                    \
  }                                                                          \
  Wide __fixuns##format##ti(decltype(Format::pack({})) x) {                  \
    return to_integer<Format, Wide>(x);                                      \
  }                                                                          \
  }

CONVERSION(__truncsfhf2, Half, Single)
CONVERSION(__truncdfhf2, Half, Double)
CONVERSION(__trunctfhf2, Half, Quad)
CONVERSION(__truncsfbf2, Brain, Single)
CONVERSION(__truncdfbf2, Brain, Double)
CONVERSION(__trunctfbf2, Brain, Quad)
CONVERSION(__trunctfsf2, Single, Quad)
CONVERSION(__trunctfdf2, Double, Quad)
CONVERSION(__extendhfsf2, Single, Half)
CONVERSION(__extendhfdf2, Double, Half)
CONVERSION(__extendbfsf2, Single, Brain)
CONVERSION(__extendhftf2, Quad, Half)
CONVERSION(__extendsftf2, Quad, Single)
CONVERSION(__extenddftf2, Quad, Double)
INTEGERS(hf, Half)
INTEGERS(bf, Brain)
INTEGERS(sf, Single)
INTEGERS(df, Double)
INTEGERS(tf, Quad)
TO_INTEGERS(hf, Half)
TO_INTEGERS(sf, Single)
TO_INTEGERS(df, Double)
TO_INTEGERS(tf, Quad)
#if defined(__x86_64__)
CONVERSION(__truncxfhf2, Half, Extended)
CONVERSION(__truncxfbf2, Brain, Extended)
CONVERSION(__trunctfxf2, Extended, Quad)
CONVERSION(__extendhfxf2, Extended, Half)
CONVERSION(__extendxftf2, Quad, Extended)
INTEGERS(xf, Extended)
TO_INTEGERS(xf, Extended)
#endif

extern "C" {
int32_t __fixtfsi(QuadType x) { return to_integer<Quad, int32_t>(x); }
int64_t __fixtfdi(QuadType x) { return to_integer<Quad, int64_t>(x); }
uint32_t __fixunstfsi(QuadType x) { return to_integer<Quad, uint32_t>(x); }
uint64_t __fixunstfdi(QuadType x) { return to_integer<Quad, uint64_t>(x); }
QuadType __floatsitf(int32_t x) { return from_integer<Quad>(x); }
QuadType __floatditf(int64_t x) { return from_integer<Quad>(x); }
QuadType __floatunsitf(uint32_t x) { return from_unsigned<Quad>(x); }
QuadType __floatunditf(uint64_t x) { return from_unsigned<Quad>(x); }
}
