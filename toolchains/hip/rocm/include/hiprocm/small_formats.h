// How 16 bits stand for a number: IEEE binary16, and bfloat16, the upper half of a float.
#pragma once

#include <hip/hip_runtime.h>

#pragma clang force_cuda_host_device begin

namespace hiprocm {

// Rounds to a neighbouring float with an odd last bit where x is not a float. Rounding that once
// more, to a narrower format, gives what rounding x directly would have given.
inline float narrow_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  const auto bits = __builtin_bit_cast(uint32_t, nearest);
  if (back == x || x != x || (bits & 1) != 0) return nearest;
  const bool further = __builtin_fabs(back) > __builtin_fabs(x);
  return __builtin_bit_cast(float, further ? bits - 1 : bits + 1);
}

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. The processor calculates with it.
struct HalfFormat {
  using Native = _Float16;
  using Wide = _Float16;
  static constexpr uint16_t kInfinity = 0x7c00;

  static Native encode(float x) { return static_cast<Native>(x); }
  static float decode(Native x) { return static_cast<float>(x); }
};

/// 1 sign, 8 exponent, 7 fraction bits. It calculates in float.
struct Bfloat16Format {
  using Native = __bf16;
  using Wide = float;
  static constexpr uint16_t kInfinity = 0x7f80;

  static Native encode(float x) {
#ifdef __HIP_DEVICE_COMPILE__
    return static_cast<Native>(x);
#else
    // A host without the instruction would call a function of the compiler's library.
    const auto bits = __builtin_bit_cast(uint32_t, x);
    const uint32_t rounded = x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
    return __builtin_bit_cast(Native, static_cast<uint16_t>(rounded >> 16));
#endif
  }
  static float decode(Native x) {
    const auto bits = __builtin_bit_cast(uint16_t, x);
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
};

enum class Rounding { kNearest, kTowardsZero, kDown, kUp };

// The 16 bits nearest to x in a direction, from those nearest to x.
template <class Format>
typename Format::Native encode_rounded(float x, Rounding rounding) {
  const auto nearest = Format::encode(x);
  const float back = Format::decode(nearest);
  const bool negative = __builtin_signbit(x);
  if (back == x || x != x || rounding == Rounding::kNearest) return nearest;
  const bool wants_less = rounding == Rounding::kDown ||
                          (rounding == Rounding::kTowardsZero && !negative);
  if (wants_less ? back < x : back > x) return nearest;
  // The neighbour below a positive number and above a negative one has the smaller bits.
  const auto bits = __builtin_bit_cast(uint16_t, nearest);
  const bool smaller = wants_less != negative;
  return __builtin_bit_cast(typename Format::Native,
                            static_cast<uint16_t>(smaller ? bits - 1 : bits + 1));
}

}  // namespace hiprocm

#pragma clang force_cuda_host_device end
