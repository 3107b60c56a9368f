// Shuffles, votes and the rest of the communication between the lanes of a wave.
//
// HIP's operations without a mask concern all active lanes; CUDA's need the mask of those. Types
// that CUDA does not exchange go through integers of their size.
#pragma once

#include <hipcuda/platform.h>

namespace hipcuda {

using LaneMask = unsigned long long;

// Code for waves of 64 lanes asks for lanes that do not exist. The driver reports what it sees in
// the source; this stops the kernel at run time, since its results would be wrong. A constant
// costs nothing.
HIPCUDA_DEVICE void require_lanes(unsigned lanes) {
  if (lanes > kWaveSize) __trap();
}
HIPCUDA_DEVICE void require_distance(unsigned distance) { require_lanes(distance + 1); }

template <int kBytes>
struct Carrier;
template <>
struct Carrier<4> {
  using type = unsigned;
};
template <>
struct Carrier<8> {
  using type = unsigned long long;
};

// Applies `exchange` to integers that hold the value's bits.
template <class T, class F>
HIPCUDA_DEVICE T exchange_bits(T value, F exchange) {
  static_assert(sizeof(T) <= 8, "lanes exchange at most 8 bytes");
  typename Carrier<(sizeof(T) <= 4 ? 4 : 8)>::type bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = exchange(bits);
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Each operation on the lanes of a mask.
template <class T>
HIPCUDA_DEVICE T shuffle(unsigned lanes, T value, int source, int width) {
  require_lanes(width);
  return exchange_bits(value, [=](auto v) { return __shfl_sync(lanes, v, source, width); });
}
template <class T>
HIPCUDA_DEVICE T shuffle_up(unsigned lanes, T value, unsigned delta, int width) {
  require_lanes(width);
  require_distance(delta);
  return exchange_bits(value, [=](auto v) { return __shfl_up_sync(lanes, v, delta, width); });
}
template <class T>
HIPCUDA_DEVICE T shuffle_down(unsigned lanes, T value, unsigned delta, int width) {
  require_lanes(width);
  require_distance(delta);
  return exchange_bits(value, [=](auto v) { return __shfl_down_sync(lanes, v, delta, width); });
}
template <class T>
HIPCUDA_DEVICE T shuffle_xor(unsigned lanes, T value, int bits, int width) {
  require_lanes(width);
  require_distance(bits);
  return exchange_bits(value, [=](auto v) { return __shfl_xor_sync(lanes, v, bits, width); });
}
HIPCUDA_DEVICE LaneMask ballot(unsigned lanes, int predicate) {
  return __ballot_sync(lanes, predicate);
}
template <class T>
HIPCUDA_DEVICE T read_first_lane(T value) {
  const unsigned lanes = __activemask();
  return shuffle(lanes, value, __ffs(lanes) - 1, kWaveSize);
}

}  // namespace hipcuda

template <class T>
HIPCUDA_DEVICE T __shfl(T value, int source, int width = hipcuda::kWaveSize) {
  return hipcuda::shuffle(__activemask(), value, source, width);
}
template <class T>
HIPCUDA_DEVICE T __shfl_up(T value, unsigned delta, int width = hipcuda::kWaveSize) {
  return hipcuda::shuffle_up(__activemask(), value, delta, width);
}
template <class T>
HIPCUDA_DEVICE T __shfl_down(T value, unsigned delta, int width = hipcuda::kWaveSize) {
  return hipcuda::shuffle_down(__activemask(), value, delta, width);
}
template <class T>
HIPCUDA_DEVICE T __shfl_xor(T value, int bits, int width = hipcuda::kWaveSize) {
  return hipcuda::shuffle_xor(__activemask(), value, bits, width);
}
template <class T>
HIPCUDA_DEVICE hipcuda::LaneMask __match_any(T value) {
  return __match_any_sync(__activemask(), value);
}

HIPCUDA_DEVICE unsigned __lane_id() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// Masks have 64 bits in HIP; CUDA's own functions take the others.
#define HIPCUDA_MASKED(name, function, Lane)                                               \
  template <class Mask, class T>                                                           \
  HIPCUDA_DEVICE T name(Mask mask, T value, Lane lane, int width = hipcuda::kWaveSize) {   \
    return hipcuda::function(static_cast<unsigned>(mask), value, lane, width);             \
  }
HIPCUDA_MASKED(__shfl_sync, shuffle, int)
HIPCUDA_MASKED(__shfl_up_sync, shuffle_up, unsigned)
HIPCUDA_MASKED(__shfl_down_sync, shuffle_down, unsigned)
HIPCUDA_MASKED(__shfl_xor_sync, shuffle_xor, int)
#undef HIPCUDA_MASKED

template <class Mask>
HIPCUDA_DEVICE hipcuda::LaneMask __ballot_sync(Mask mask, int predicate) {
  return hipcuda::ballot(static_cast<unsigned>(mask), predicate);
}

// The driver replaces __ballot, __any and __all with these: CUDA still declares functions of those
// names, and libraries use the names for others.
#define hipcuda_ballot(predicate) (::hipcuda::ballot(__activemask(), (predicate)))
#define hipcuda_any(predicate) (__any_sync(__activemask(), (predicate)))
#define hipcuda_all(predicate) (__all_sync(__activemask(), (predicate)))

namespace hipcuda {

// Combines the values of the lanes one after the other, in order, for lack of an instruction.
template <class T, class F>
HIPCUDA_DEVICE T reduce(unsigned lanes, T value, F combine) {
  T result = shuffle(lanes, value, __ffs(lanes) - 1, kWaveSize);
  for (unsigned rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1) {
    result = combine(result, shuffle(lanes, value, __ffs(rest) - 1, kWaveSize));
  }
  return result;
}

}  // namespace hipcuda

// Integers of 32 bits have instructions, under CUDA's names.
#define HIPCUDA_WAVE_REDUCTION(name, expression)                                          \
  template <class T>                                                                      \
  HIPCUDA_DEVICE T name(unsigned long long mask, T value) {                               \
    return hipcuda::reduce(static_cast<unsigned>(mask), value,                            \
                           [](T a, T b) { return static_cast<T>(expression); });          \
  }                                                                                       \
  HIPCUDA_DEVICE int name(unsigned long long mask, int value) {                           \
    return name(static_cast<unsigned>(mask), value);                                      \
  }                                                                                       \
  HIPCUDA_DEVICE unsigned name(unsigned long long mask, unsigned value) {                 \
    return name(static_cast<unsigned>(mask), value);                                      \
  }
HIPCUDA_WAVE_REDUCTION(__reduce_add_sync, a + b)
HIPCUDA_WAVE_REDUCTION(__reduce_min_sync, b < a ? b : a)
HIPCUDA_WAVE_REDUCTION(__reduce_max_sync, a < b ? b : a)
#undef HIPCUDA_WAVE_REDUCTION
