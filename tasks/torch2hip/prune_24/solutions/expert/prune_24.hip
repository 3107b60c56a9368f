// Pruning to two of four at the speed of memory. A row is a whole number of groups of eight, so the
// matrix is a list of groups: a lane has several, a block of lanes apart, and requests all of them
// before it looks at one. Elements are compared as integers without their sign, which are ordered
// as absolute values are, and an element stays where it wins at least two of its three comparisons:
// no loop, no branch, no place in memory. If a pointer is not aligned, elements are moved one by
// one.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kGroup = 8;  // elements of a group, of which four stay

// Of elements that are taken as these integers: the word of those of a group that stay.
template <class Bits> struct Words;
template <> struct Words<uint16_t> {
  using Kept = uint2;
  static constexpr int kItems = 4;  // groups of a lane: 64 bytes on their way
};
template <> struct Words<uint32_t> {
  using Kept = uint4;
  static constexpr int kItems = 2;
};

template <class Bits> union Group {
  uint4 words[kGroup * sizeof(Bits) / 16];
  Bits v[kGroup];
};

template <class Bits> union Kept {
  typename Words<Bits>::Kept word;
  Bits v[kGroup / 2];
};

// Two of the three.
__device__ bool most(bool a, bool b, bool c) { return (a && b) || (a && c) || (b && c); }

// Writes the two of four that stay, and returns their places.
template <class Bits> __device__ uint32_t prune(const Bits* four, Bits* two) {
  constexpr Bits kSize = (Bits)~(Bits)0 >> 1;  // all bits but the sign
  const uint32_t a = four[0] & kSize, b = four[1] & kSize;
  const uint32_t c = four[2] & kSize, d = four[3] & kSize;
  // Of equals, that further left wins.
  const bool ab = a >= b, ac = a >= c, ad = a >= d, bc = b >= c, bd = b >= d, cd = c >= d;
  const bool first_stays = most(ab, ac, ad), second_stays = most(!ab, bc, bd);
  const bool third_stays = most(!ac, !bc, cd), fourth_stays = most(!ad, !bd, !cd);
  two[0] = first_stays ? four[0] : second_stays ? four[1] : four[2];
  two[1] = fourth_stays ? four[3] : third_stays ? four[2] : four[1];
  const uint32_t left = first_stays ? 0 : second_stays ? 1 : 2;
  const uint32_t right = fourth_stays ? 3 : third_stays ? 2 : 1;
  return left | right << 2;
}

template <class Bits, bool kAligned>
__global__ __launch_bounds__(kThreads) void prune_groups(const Bits* __restrict__ w,
                                                         Bits* __restrict__ kept,
                                                         uint8_t* __restrict__ place, int64_t n) {
  constexpr int kItems = Words<Bits>::kItems, kWords = kGroup * sizeof(Bits) / 16;
  const int64_t first = (int64_t)blockIdx.x * (kThreads * kItems) + threadIdx.x;
  Group<Bits> groups[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int64_t group = first + i * kThreads;
    if (group >= n) continue;
    if constexpr (kAligned) {
      const uint4* from = reinterpret_cast<const uint4*>(w) + group * kWords;
#pragma unroll
      for (int k = 0; k < kWords; ++k) groups[i].words[k] = from[k];
    } else {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) groups[i].v[j] = w[group * kGroup + j];
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int64_t group = first + i * kThreads;
    if (group >= n) continue;
    Kept<Bits> stay;
    const uint32_t low = prune(groups[i].v, stay.v), high = prune(groups[i].v + 4, stay.v + 2);
    if constexpr (kAligned) {
      reinterpret_cast<Kept<Bits>*>(kept)[group].word = stay.word;
    } else {
#pragma unroll
      for (int j = 0; j < kGroup / 2; ++j) kept[group * (kGroup / 2) + j] = stay.v[j];
    }
    place[group] = (uint8_t)(low | high << 4);
  }
}

template <class Bits> hipError_t prune_24(const void* w, void* kept, uint8_t* place, int64_t rows,
                                          int64_t groups, hipStream_t stream) {
  constexpr int kOfBlock = kThreads * Words<Bits>::kItems;
  const int64_t n = rows * groups;
  const bool aligned = ((uintptr_t)w | (uintptr_t)kept) % 16 == 0;
  const auto kernel = aligned ? prune_groups<Bits, true> : prune_groups<Bits, false>;
  kernel<<<dim3((unsigned)((n + kOfBlock - 1) / kOfBlock)), dim3(kThreads), 0, stream>>>(
      static_cast<const Bits*>(w), static_cast<Bits*>(kept), place, n);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t prune_24_f16(const __half* w, __half* kept, uint8_t* place, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return prune_24<uint16_t>(w, kept, place, rows, groups, stream);
}

extern "C" hipError_t prune_24_bf16(const __hip_bfloat16* w, __hip_bfloat16* kept, uint8_t* place,
                                    int64_t rows, int64_t groups, hipStream_t stream) {
  return prune_24<uint16_t>(w, kept, place, rows, groups, stream);
}

extern "C" hipError_t prune_24_f32(const float* w, float* kept, uint8_t* place, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return prune_24<uint32_t>(w, kept, place, rows, groups, stream);
}
