// The 16-bit formats: IEEE binary16, and bfloat16, the upper half of a float. Both are the
// compiler's own types.
#pragma once

#include <hip16/rounding.h>

HIP16_BEGIN

namespace hip16 {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. The processor calculates with it.
struct HalfFormat {
  using Storage = _Float16;
  using Wide = _Float16;
  static constexpr uint16_t kInfinity = 0x7c00;

  static Storage encode(float x) { return static_cast<Storage>(x); }
  static float decode(Storage x) { return static_cast<float>(x); }
  static Wide wide(Storage x) { return x; }

  static Storage fma(Wide x, Wide y, Wide z) { return __builtin_elementwise_fma(x, y, z); }
  static Storage larger(Wide x, Wide y) { return __builtin_elementwise_maxnum(x, y); }
  static Storage smaller(Wide x, Wide y) { return __builtin_elementwise_minnum(x, y); }
};

/// 1 sign, 8 exponent, 7 fraction bits. It calculates in float.
struct Bfloat16Format {
  using Storage = __bf16;
  using Wide = float;
  static constexpr uint16_t kInfinity = 0x7f80;

  static Storage encode(float x) {
#ifdef __HIP_DEVICE_COMPILE__
    return static_cast<Storage>(x);
#else
    // A host without the instruction would call a function of the compiler's library.
    const auto bits = __builtin_bit_cast(uint32_t, x);
    const uint32_t rounded = x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
    return __builtin_bit_cast(Storage, static_cast<uint16_t>(rounded >> 16));
#endif
  }
  static float decode(Storage x) {
    const auto bits = __builtin_bit_cast(uint16_t, x);
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
  static Wide wide(Storage x) { return decode(x); }

  static Storage fma(Wide x, Wide y, Wide z) { return encode(__builtin_fmaf(x, y, z)); }
  static Storage larger(Wide x, Wide y) { return encode(__builtin_fmaxf(x, y)); }
  static Storage smaller(Wide x, Wide y) { return encode(__builtin_fminf(x, y)); }
};

}  // namespace hip16

HIP16_END
