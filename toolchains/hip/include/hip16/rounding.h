// Rounding to 16-bit numbers where the processor has no instruction for it.
#pragma once

#include <hip16/platform.h>

HIP16_BEGIN

namespace hip16 {

// Rounds to a neighbouring float with an odd last bit if x is not a float. Rounding that again, to
// a narrower format, gives the same as rounding x directly.
HIP16_INLINE float narrow_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  const auto bits = __builtin_bit_cast(uint32_t, nearest);
  if (back == x || x != x || (bits & 1) != 0) return nearest;
  const bool further = __builtin_fabs(back) > __builtin_fabs(x);
  return __builtin_bit_cast(float, further ? bits - 1 : bits + 1);
}

enum class Rounding { kNearest, kTowardsZero, kDown, kUp };

// The number nearest to x in a direction, from the one nearest to x.
template <class Format>
HIP16_INLINE typename Format::Storage encode_rounded(float x, Rounding rounding) {
  using Storage = typename Format::Storage;
  const Storage nearest = Format::encode(x);
  const float back = Format::decode(nearest);
  const bool negative = __builtin_signbit(x);
  if (back == x || x != x || rounding == Rounding::kNearest) return nearest;
  const bool wants_less = rounding == Rounding::kDown ||
                          (rounding == Rounding::kTowardsZero && !negative);
  if (wants_less ? back < x : back > x) return nearest;
  // The neighbour below a positive number and above a negative one has the smaller bits.
  const auto bits = __builtin_bit_cast(uint16_t, nearest);
  const bool smaller = wants_less != negative;
  return __builtin_bit_cast(Storage, static_cast<uint16_t>(smaller ? bits - 1 : bits + 1));
}

}  // namespace hip16

HIP16_END
