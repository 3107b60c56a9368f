// Unpacked numbers of any IEEE 754 format, shared by conversions and software arithmetic.
#pragma once
#include <stdint.h>

using Wide = unsigned __int128;
using Signed = __int128;

enum class Kind { kZero, kFinite, kInfinite, kNan };

// A finite number is significand / 2^127 * 2^exponent, with the highest bit of the significand set.
// The significand of a NaN is its payload, from the highest bit on.
struct Number {
  Kind kind;
  bool negative;
  int exponent;
  Wide significand;
};

inline int leading_zeros(Wide value) {
  const uint64_t high = static_cast<uint64_t>(value >> 64);
  return high != 0 ? __builtin_clzll(high) : 64 + __builtin_clzll(static_cast<uint64_t>(value));
}

// Shifts right; the lowest bit is set if any bit was lost.
inline Wide shifted_right(Wide value, int count) {
  if (count <= 0) return value;
  if (count > 127) return value != 0;
  return value >> count | ((value << (128 - count)) != 0);
}

inline Number normalised(bool negative, int exponent, Wide significand) {
  if (significand == 0) return {Kind::kZero, negative, 0, 0};
  const int zeros = leading_zeros(significand);
  return {Kind::kFinite, negative, exponent - zeros, significand << zeros};
}

// The layout of a format: `explicit_bit` if the highest bit of the significand is stored.
template <class Type, class Storage, int kFraction, int kExponent, bool kExplicitBit = false>
struct Layout {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kTop = (1 << kExponent) - 1;
  static constexpr int kStored = kFraction + kExplicitBit;

  static Wide bits_of(Type value) {
    Storage storage = 0;
    __builtin_memcpy(&storage, &value, sizeof value);
    return static_cast<Wide>(storage);
  }

  static Number unpack(Type value) {
    const Wide bits = bits_of(value);
    const bool negative = bits >> (kStored + kExponent) & 1;
    const int biased = static_cast<int>(bits >> kStored) & kTop;
    const Wide fraction = bits & ((static_cast<Wide>(1) << kFraction) - 1);
    if (biased == kTop) {
      if (fraction == 0) return {Kind::kInfinite, negative, 0, 0};
      return {Kind::kNan, negative, 0, fraction << (128 - kFraction)};
    }
    const Wide hidden = static_cast<Wide>(biased != 0) << kFraction;
    const int exponent = (biased != 0 ? biased : 1) - kBias;
    return normalised(negative, exponent + 127 - kFraction, fraction | hidden);
  }

  static Type pack(const Number& number) {
    Wide bits = magnitude(number);
    if (kExplicitBit) {
      const Wide fraction = bits & ((static_cast<Wide>(1) << kFraction) - 1);
      const Wide exponent = bits >> kFraction;
      bits = exponent << kStored | static_cast<Wide>(exponent != 0) << kFraction | fraction;
    }
    bits |= static_cast<Wide>(number.negative) << (kStored + kExponent);
    const Storage storage = static_cast<Storage>(bits);
    Type value{};
    __builtin_memcpy(&value, &storage, kExplicitBit ? 10 : sizeof value);
    return value;
  }

 private:
  // Exponent and fraction without a stored highest bit, rounded to the nearest, ties to even.
  static Wide magnitude(const Number& number) {
    constexpr Wide kInfinity = static_cast<Wide>(kTop) << kFraction;
    switch (number.kind) {
      case Kind::kZero: return 0;
      case Kind::kInfinite: return kInfinity;
      case Kind::kNan:
        return kInfinity | static_cast<Wide>(1) << (kFraction - 1) |
               number.significand >> (128 - kFraction);
      case Kind::kFinite: break;
    }
    const int biased = number.exponent + kBias;
    if (biased >= kTop) return kInfinity;
    const int denormal = biased > 0 ? 0 : 1 - biased;
    const Wide exact = shifted_right(number.significand, denormal);
    constexpr int kDropped = 127 - kFraction;
    const Wide half = static_cast<Wide>(1) << (kDropped - 1);
    const Wide rest = exact & ((half << 1) - 1);
    Wide kept = exact >> kDropped;
    kept += rest > half || (rest == half && (kept & 1));
    // The highest remaining bit carries into the exponent.
    return (static_cast<Wide>(biased > 0 ? biased - 1 : 0) << kFraction) + kept;
  }
};

using Half = Layout<_Float16, uint16_t, 10, 5>;
using Brain = Layout<__bf16, uint16_t, 7, 8>;
using Single = Layout<float, uint32_t, 23, 8>;
using Double = Layout<double, uint64_t, 52, 11>;
#if defined(__x86_64__)
using Extended = Layout<long double, Wide, 63, 15, true>;
using Quad = Layout<__float128, Wide, 112, 15>;
using QuadType = __float128;
#else
using Quad = Layout<long double, Wide, 112, 15>;
using QuadType = long double;
#endif
