// Shuffles of 16-bit numbers and pairs of them, as the 32 bits that shuffles move.
#pragma once

#include <hip16/small_float.h>

#define HIPROCM_SHUFFLE(name, Where)                                                     \
  template <class Format>                                                                \
  __device__ inline hip16::SmallFloat<Format> name(hip16::SmallFloat<Format> value,      \
                                                   Where where, int width = warpSize) {  \
    const int moved = name(static_cast<int>(value.bits()), where, width);                \
    return hip16::SmallFloat<Format>::from_bits(static_cast<uint16_t>(moved));           \
  }                                                                                      \
  template <class Format>                                                                \
  __device__ inline hip16::SmallFloat2<Format> name(hip16::SmallFloat2<Format> value,    \
                                                    Where where, int width = warpSize) { \
    const int moved = name(__builtin_bit_cast(int, value), where, width);                \
    return __builtin_bit_cast(hip16::SmallFloat2<Format>, moved);                        \
  }

HIPROCM_SHUFFLE(__shfl, int)
HIPROCM_SHUFFLE(__shfl_up, unsigned)
HIPROCM_SHUFFLE(__shfl_down, unsigned)
HIPROCM_SHUFFLE(__shfl_xor, int)
#undef HIPROCM_SHUFFLE
