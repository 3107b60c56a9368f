// The 16-bit formats: IEEE binary16, and bfloat16, the upper half of a float. Both are stored as
// bits and calculate in float.
#pragma once

#include <hip16/rounding.h>

namespace hip16 {

HIPCPU_INLINE uint32_t float_bits(float x) { return static_cast<uint32_t>(hipcpu::to_bits(x)); }
HIPCPU_INLINE float bits_float(uint32_t bits) { return hipcpu::from_bits<float>(bits); }

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct HalfFormat {
  using Storage = uint16_t;
  using Wide = float;
  static constexpr uint16_t kInfinity = 0x7c00;

  // For compilers without a 16-bit floating type. Rounds to nearest, ties to even.
  static uint16_t encode_in_software(float x) {
    const uint32_t bits = float_bits(x);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (bits >> 13 & 0x3ff));
    if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | kInfinity);
    if (magnitude < 0x38800000) {
      // A subnormal half is a multiple of 2^-24. The addition aligns the last bit of the sum with
      // that, so that it rounds.
      const float sum = bits_float(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (float_bits(sum) - float_bits(0.5f)));
    }
    const uint32_t odd = magnitude >> 13 & 1;
    return static_cast<uint16_t>(sign | (magnitude - 0x38000000 + 0xfff + odd) >> 13);
  }

  static float decode_in_software(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
    const uint32_t magnitude = half & 0x7fff;
    if (magnitude >= kInfinity) {
      const uint32_t quiet = magnitude > kInfinity ? 0x400000 : 0;
      return bits_float(sign | 0x7f800000 | quiet | (magnitude & 0x3ff) << 13);
    }
    if (magnitude < 0x400) {
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return bits_float(sign | float_bits(value));
    }
    return bits_float(sign | ((magnitude << 13) + 0x38000000));
  }

#ifdef __FLT16_MANT_DIG__
  static uint16_t encode(float x) {
    return static_cast<uint16_t>(hipcpu::to_bits(static_cast<_Float16>(x)));
  }
  static float decode(uint16_t half) { return static_cast<float>(hipcpu::from_bits<_Float16>(half)); }
#else
  static uint16_t encode(float x) { return encode_in_software(x); }
  static float decode(uint16_t half) { return decode_in_software(half); }
#endif

  static float wide(uint16_t bits) { return decode(bits); }
  static uint16_t larger(float x, float y) { return encode(__builtin_fmaxf(x, y)); }
  static uint16_t smaller(float x, float y) { return encode(__builtin_fminf(x, y)); }

  // Rounds once: the product of two halves is exact in double, and so is every sum on the border
  // between two halves.
  static uint16_t fma(float x, float y, float z) {
    return encode(narrow_to_odd(static_cast<double>(x) * y + z));
  }
};

/// 1 sign, 8 exponent, 7 fraction bits.
struct Bfloat16Format {
  using Storage = uint16_t;
  using Wide = float;
  static constexpr uint16_t kInfinity = 0x7f80;

  static uint16_t encode(float x) {
    const uint32_t bits = float_bits(x);
    if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  static float decode(uint16_t bits) { return bits_float(static_cast<uint32_t>(bits) << 16); }

  static float wide(uint16_t bits) { return decode(bits); }
  static uint16_t larger(float x, float y) { return encode(__builtin_fmaxf(x, y)); }
  static uint16_t smaller(float x, float y) { return encode(__builtin_fminf(x, y)); }

  // As on the device: fused in float, then rounded.
  static uint16_t fma(float x, float y, float z) { return encode(__builtin_fmaf(x, y, z)); }
};

}  // namespace hip16
