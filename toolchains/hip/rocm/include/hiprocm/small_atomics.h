// Atomic addition to 16-bit numbers, by exchanging the 32-bit words that hold them.
#pragma once

#include <hip16/small_float.h>

namespace hiprocm {

// Exchanges a word until no other thread has changed it in between; returns the old value.
template <class Change>
__device__ inline uint32_t change_word(uint32_t* word, Change change) {
  uint32_t seen = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (!__hip_atomic_compare_exchange_strong(word, &seen, change(seen), __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {
  }
  return seen;
}

}  // namespace hiprocm

template <class Format>
__device__ inline hip16::SmallFloat<Format> atomicAdd(hip16::SmallFloat<Format>* address,
                                                      hip16::SmallFloat<Format> value) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  const unsigned shift = (place & 2) * 8;
  auto number = [shift](uint32_t word) {
    return hip16::SmallFloat<Format>::from_bits(static_cast<uint16_t>(word >> shift));
  };
  auto* word = reinterpret_cast<uint32_t*>(place & ~uintptr_t{3});
  return number(hiprocm::change_word(word, [&](uint32_t seen) {
    const uint32_t sum = (number(seen) + value).bits();
    return (seen & ~(0xffffu << shift)) | (sum << shift);
  }));
}

template <class Format>
__device__ inline hip16::SmallFloat2<Format> atomicAdd(hip16::SmallFloat2<Format>* address,
                                                       hip16::SmallFloat2<Format> value) {
  using Pair = hip16::SmallFloat2<Format>;
  const uint32_t old = hiprocm::change_word(
      reinterpret_cast<uint32_t*>(address), [value](uint32_t seen) {
        return __builtin_bit_cast(uint32_t, __builtin_bit_cast(Pair, seen) + value);
      });
  return __builtin_bit_cast(Pair, old);
}
