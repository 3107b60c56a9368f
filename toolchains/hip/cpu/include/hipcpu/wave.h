// Shuffles, votes and the rest of the communication between the lanes of a wave.
//
// All of it rests on one operation: every participating lane posts 64 bits and sees what the
// others posted. Lanes meet at the same site, a number for the place of the call in the source. If
// lanes diverge, the group at the smallest site goes first, as on a GPU that reconverges at the
// smallest program counter.
#pragma once

#include <hipcpu/context.h>

namespace hipcpu {

using LaneMask = unsigned long long;

constexpr LaneMask kAllLanes = ~0ull;
constexpr uint32_t kLaneBits = HIPCPU_WAVE_SIZE - 1;

/// The lanes that met, and the values that they posted, by lane.
struct Exchange {
  const uint64_t* values;
  LaneMask lanes;
};

}  // namespace hipcpu

/// Posts `value` and waits for the lanes in `wanted`, except those that have returned or wait
/// elsewhere.
extern "C" hipcpu::Exchange hipcpu_exchange(uint64_t value, uint32_t site,
                                            hipcpu::LaneMask wanted) noexcept;

#define HIPCPU_SITE uint32_t site = __builtin_LINE()

namespace hipcpu {

template <class T>
HIPCPU_INLINE uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "lanes exchange at most 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
HIPCPU_INLINE T from_bits(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// Masked operations take 64-bit masks on AMD; a 32-bit mask would silently leave out lanes.
template <class Mask>
HIPCPU_INLINE LaneMask lane_mask(Mask mask) {
  static_assert(HIPCPU_WAVE_SIZE == 32 || sizeof(Mask) == 8,
                "the mask must be a 64-bit integer: a wave has 64 lanes");
  return HIPCPU_WAVE_SIZE == 32 ? static_cast<uint32_t>(mask) : static_cast<LaneMask>(mask);
}

template <class T>
HIPCPU_INLINE T read_lane(T value, uint32_t source, uint32_t site, LaneMask wanted) {
  return from_bits<T>(hipcpu_exchange(to_bits(value), site, wanted).values[source & kLaneBits]);
}

template <class T>
HIPCPU_INLINE T shuffle(T value, int source, int width, uint32_t site, LaneMask wanted) {
  const uint32_t segment = lane() & ~(width - 1);
  return read_lane(value, segment | (source & (width - 1)), site, wanted);
}
template <class T>
HIPCPU_INLINE T shuffle_up(T value, uint32_t delta, int width, uint32_t site, LaneMask wanted) {
  const uint32_t inside = lane() & (width - 1);
  return read_lane(value, inside < delta ? lane() : lane() - delta, site, wanted);
}
template <class T>
HIPCPU_INLINE T shuffle_down(T value, uint32_t delta, int width, uint32_t site, LaneMask wanted) {
  const uint32_t inside = lane() & (width - 1);
  const bool leaves = inside + delta >= static_cast<uint32_t>(width);
  return read_lane(value, leaves ? lane() : lane() + delta, site, wanted);
}
template <class T>
HIPCPU_INLINE T shuffle_xor(T value, int bits, int width, uint32_t site, LaneMask wanted) {
  const uint32_t source = lane() ^ bits;
  const uint32_t segment_end = (lane() + width) & ~(width - 1);
  return read_lane(value, source >= segment_end ? lane() : source, site, wanted);
}

HIPCPU_INLINE LaneMask ballot(int predicate, uint32_t site, LaneMask wanted) {
  const Exchange exchange = hipcpu_exchange(predicate != 0, site, wanted);
  LaneMask votes = 0;
  for (uint32_t i = 0; i < HIPCPU_WAVE_SIZE; ++i) votes |= (exchange.values[i] & 1) << i;
  return votes & exchange.lanes;
}

// Combines the posted values of the lanes that met, in lane order.
template <class T, class F>
HIPCPU_INLINE T reduce(T value, uint32_t site, LaneMask wanted, F combine) {
  const Exchange exchange = hipcpu_exchange(to_bits(value), site, wanted);
  LaneMask rest = exchange.lanes;
  T result = from_bits<T>(exchange.values[__builtin_ctzll(rest)]);
  while ((rest &= rest - 1) != 0) {
    result = combine(result, from_bits<T>(exchange.values[__builtin_ctzll(rest)]));
  }
  return result;
}

template <class T>
HIPCPU_INLINE LaneMask match_any(T value, uint32_t site, LaneMask wanted) {
  const Exchange exchange = hipcpu_exchange(to_bits(value), site, wanted);
  LaneMask equal = 0;
  for (LaneMask rest = exchange.lanes; rest != 0; rest &= rest - 1) {
    const int other = __builtin_ctzll(rest);
    if (exchange.values[other] == to_bits(value)) equal |= 1ull << other;
  }
  return equal;
}

}  // namespace hipcpu

template <class T>
HIPCPU_INLINE T __shfl(T value, int source, int width = warpSize, HIPCPU_SITE) {
  return hipcpu::shuffle(value, source, width, site, hipcpu::kAllLanes);
}
template <class T>
HIPCPU_INLINE T __shfl_up(T value, unsigned delta, int width = warpSize, HIPCPU_SITE) {
  return hipcpu::shuffle_up(value, delta, width, site, hipcpu::kAllLanes);
}
template <class T>
HIPCPU_INLINE T __shfl_down(T value, unsigned delta, int width = warpSize, HIPCPU_SITE) {
  return hipcpu::shuffle_down(value, delta, width, site, hipcpu::kAllLanes);
}
template <class T>
HIPCPU_INLINE T __shfl_xor(T value, int bits, int width = warpSize, HIPCPU_SITE) {
  return hipcpu::shuffle_xor(value, bits, width, site, hipcpu::kAllLanes);
}
template <class Mask, class T>
HIPCPU_INLINE T __shfl_sync(Mask mask, T value, int source, int width = warpSize, HIPCPU_SITE) {
  return hipcpu::shuffle(value, source, width, site, hipcpu::lane_mask(mask));
}
template <class Mask, class T>
HIPCPU_INLINE T __shfl_up_sync(Mask mask, T value, unsigned delta, int width = warpSize,
                               HIPCPU_SITE) {
  return hipcpu::shuffle_up(value, delta, width, site, hipcpu::lane_mask(mask));
}
template <class Mask, class T>
HIPCPU_INLINE T __shfl_down_sync(Mask mask, T value, unsigned delta, int width = warpSize,
                                 HIPCPU_SITE) {
  return hipcpu::shuffle_down(value, delta, width, site, hipcpu::lane_mask(mask));
}
template <class Mask, class T>
HIPCPU_INLINE T __shfl_xor_sync(Mask mask, T value, int bits, int width = warpSize, HIPCPU_SITE) {
  return hipcpu::shuffle_xor(value, bits, width, site, hipcpu::lane_mask(mask));
}

HIPCPU_INLINE unsigned long long __ballot(int predicate, HIPCPU_SITE) {
  return hipcpu::ballot(predicate, site, hipcpu::kAllLanes);
}
HIPCPU_INLINE int __any(int predicate, HIPCPU_SITE) { return __ballot(predicate, site) != 0; }
HIPCPU_INLINE int __all(int predicate, HIPCPU_SITE) { return __ballot(!predicate, site) == 0; }
HIPCPU_INLINE unsigned long long __activemask(HIPCPU_SITE) {
  return hipcpu_exchange(0, site, hipcpu::kAllLanes).lanes;
}
template <class Mask>
HIPCPU_INLINE unsigned long long __ballot_sync(Mask mask, int predicate, HIPCPU_SITE) {
  return hipcpu::ballot(predicate, site, hipcpu::lane_mask(mask));
}
template <class Mask>
HIPCPU_INLINE int __any_sync(Mask mask, int predicate, HIPCPU_SITE) {
  return __ballot_sync(mask, predicate, site) != 0;
}
template <class Mask>
HIPCPU_INLINE int __all_sync(Mask mask, int predicate, HIPCPU_SITE) {
  return __ballot_sync(mask, !predicate, site) == 0;
}
HIPCPU_INLINE void __syncwarp(HIPCPU_SITE) { hipcpu_exchange(0, site, hipcpu::kAllLanes); }
template <class Mask>
HIPCPU_INLINE void __syncwarp(Mask mask, HIPCPU_SITE) {
  hipcpu_exchange(0, site, hipcpu::lane_mask(mask));
}

template <class Mask, class T>
HIPCPU_INLINE unsigned long long __match_any_sync(Mask mask, T value, HIPCPU_SITE) {
  return hipcpu::match_any(value, site, hipcpu::lane_mask(mask));
}
template <class T>
HIPCPU_INLINE unsigned long long __match_any(T value, HIPCPU_SITE) {
  return hipcpu::match_any(value, site, hipcpu::kAllLanes);
}
template <class Mask, class T>
HIPCPU_INLINE unsigned long long __match_all_sync(Mask mask, T value, int* all_equal,
                                                  HIPCPU_SITE) {
  const hipcpu::Exchange exchange =
      hipcpu_exchange(hipcpu::to_bits(value), site, hipcpu::lane_mask(mask));
  *all_equal = 1;
  for (hipcpu::LaneMask rest = exchange.lanes; rest != 0; rest &= rest - 1) {
    if (exchange.values[__builtin_ctzll(rest)] != hipcpu::to_bits(value)) *all_equal = 0;
  }
  return *all_equal ? exchange.lanes : 0;
}

#define HIPCPU_WAVE_REDUCTION(name, expression)                                        \
  template <class Mask, class T>                                                       \
  HIPCPU_INLINE T name(Mask mask, T value, HIPCPU_SITE) {                              \
    return hipcpu::reduce(value, site, hipcpu::lane_mask(mask),                        \
                          [](T a, T b) { return static_cast<T>(expression); });        \
  }
HIPCPU_WAVE_REDUCTION(__reduce_add_sync, a + b)
HIPCPU_WAVE_REDUCTION(__reduce_min_sync, b < a ? b : a)
HIPCPU_WAVE_REDUCTION(__reduce_max_sync, a < b ? b : a)
HIPCPU_WAVE_REDUCTION(__reduce_and_sync, a & b)
HIPCPU_WAVE_REDUCTION(__reduce_or_sync, a | b)
HIPCPU_WAVE_REDUCTION(__reduce_xor_sync, a ^ b)
#undef HIPCPU_WAVE_REDUCTION

// The builtins of AMD's compiler that have a plain meaning without its hardware.
namespace hipcpu {
template <class T>
HIPCPU_INLINE T read_first_lane(T value, HIPCPU_SITE) {
  const Exchange exchange = hipcpu_exchange(to_bits(value), site, kAllLanes);
  return from_bits<T>(exchange.values[__builtin_ctzll(exchange.lanes)]);
}
}  // namespace hipcpu
#define __builtin_amdgcn_readfirstlane(value) hipcpu::read_first_lane(value)
#define __builtin_amdgcn_readlane(value, source) \
  hipcpu::read_lane(value, source, __builtin_LINE(), hipcpu::kAllLanes)
#define __builtin_amdgcn_ds_bpermute(address, value) \
  hipcpu::read_lane(value, (address) >> 2, __builtin_LINE(), hipcpu::kAllLanes)
#define __builtin_amdgcn_wave_barrier() __syncwarp()
#define __builtin_amdgcn_wavefrontsize() HIPCPU_WAVE_SIZE
