// Quantisation to int8 by blocks of 128 x 128, with the transpose, that reads x from memory once.
//
// A block of threads keeps its part of x in registers, 8 packs of 16 bytes a thread, which are the
// same columns of two times four rows one below the other. So a thread has four elements of a row
// of qt side by side, as a word, and the transposition in shared memory moves words. Where a tensor
// is not aligned, elements are moved one by one.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kSide = 128;            // rows and columns of a block
constexpr int kItems = 8;             // packs of a thread
constexpr int kFour = 4;              // bytes of a word: rows of a column
constexpr int kWave = 32;             // lanes that reduce by shuffles, also in waves of 64
constexpr int kWords = kSide / kFour; // words of a row of qt

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

// The word that has so many bytes.
template <int kBytes> struct Word;
template <> struct Word<1> { using Type = uint8_t; };
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint64_t; };
template <> struct Word<16> { using Type = uint4; };

// Elements that are moved as one word: a compiler may cut a copy of the elements into pieces.
template <class T, int kPack> union Pack {
  typename Word<kPack * sizeof(T)>::Type bits;
  T v[kPack];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

template <bool kWide, class T, int kPack> __device__ Pack<T, kPack> load(const T* from) {
  if constexpr (kWide) return read<T, kPack>(from);
  Pack<T, kPack> pack;
#pragma unroll
  for (int j = 0; j < kPack; ++j) pack.v[j] = from[j];
  return pack;
}

template <bool kWide, class T, int kPack>
__device__ void store(T* to, const Pack<T, kPack>& pack) {
  if constexpr (kWide) {
    write<T, kPack>(to, pack);
  } else {
#pragma unroll
    for (int j = 0; j < kPack; ++j) to[j] = pack.v[j];
  }
}

// Of two words, the bytes with these numbers; the second word's begin at 4.
__device__ uint32_t bytes_of(uint32_t low, uint32_t high, uint32_t selector) {
  return __byte_perm(low, high, selector);
}

// v, which is in -127 .. 127, rounded to the nearest integer: the last byte of the result. Beside
// 3 * 2^22 float32 has no room for a fraction.
__device__ uint32_t rounded(float v, float inverse) {
  return __float_as_uint(fmaf(v, inverse, 12582912.0f));
}

template <class T, bool kWide>
__global__ __launch_bounds__(kSide * kSide * sizeof(T) / (16 * kItems)) void quantise_blocks(
    const T* __restrict__ x, int8_t* __restrict__ q, int8_t* __restrict__ qt,
    float* __restrict__ scale, int64_t down, int64_t across) {
  constexpr int kPack = 16 / sizeof(T);
  constexpr int kLanes = kSide / kPack;               // packs of a row
  constexpr int kThreads = kSide * kLanes / kItems;
  constexpr int kShift = kPack / 4;                   // see `turn`
  __shared__ alignas(16) uint32_t turned[kSide * kWords];
  __shared__ float largest_of[kThreads / kWave];
  const int lane = threadIdx.x % kLanes, part = threadIdx.x / kLanes;
  const int64_t cols = across * kSide;
  const int64_t corner = blockIdx.y * kSide * cols + blockIdx.x * kSide;
  const auto row = [&](int item) {
    return item / kFour * (kSide / 2) + part * kFour + item % kFour;
  };

  Pack<T, kPack> held[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    held[i] = load<kWide, T, kPack>(x + corner + row(i) * cols + lane * kPack);
  }

  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) largest = fmaxf(largest, fabsf(to_float(held[i].v[j])));
  }
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor(largest, distance, kWave));
  }
  if (threadIdx.x % kWave == 0) largest_of[threadIdx.x / kWave] = largest;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreads / kWave; ++w) largest = fmaxf(largest, largest_of[w]);
  const float step = largest / 127.0f;
  if (threadIdx.x == 0) scale[blockIdx.y * across + blockIdx.x] = step;
  // A step may be so small that its inverse is infinite; such a block is multiplied up first.
  const float lift = step < 1e-30f ? 1.8446744e19f : 1.0f;
  const float inverse = step > 0.0f ? 1.0f / (step * lift) : 0.0f;

  // Words of a column are shifted within it by an exclusive or, or columns that are written
  // together would meet in the same banks.
  const auto turn = [&](int col) { return col / kPack * kShift; };
#pragma unroll
  for (int four = 0; four < kItems / kFour; ++four) {
    Pack<uint32_t, kPack / kFour> words[kFour];  // each with four columns of a row
#pragma unroll
    for (int i = 0; i < kFour; ++i) {
      const auto& pack = held[four * kFour + i];
#pragma unroll
      for (int w = 0; w < kPack / kFour; ++w) {
        uint32_t b[kFour];
#pragma unroll
        for (int j = 0; j < kFour; ++j) {
          b[j] = rounded(to_float(pack.v[w * kFour + j]) * lift, inverse);
        }
        words[i].v[w] =
            bytes_of(bytes_of(b[0], b[1], 0x0040), bytes_of(b[2], b[3], 0x0040), 0x5410);
      }
      Pack<int8_t, kPack> bytes;
      bytes.bits = words[i].bits;
      store<kWide, int8_t, kPack>(q + corner + row(four * kFour + i) * cols + lane * kPack, bytes);
    }
#pragma unroll
    for (int w = 0; w < kPack / kFour; ++w) {
      // Even and odd columns of two rows each, then columns of four rows.
      const uint32_t even01 = bytes_of(words[0].v[w], words[1].v[w], 0x6240);
      const uint32_t odd01 = bytes_of(words[0].v[w], words[1].v[w], 0x7351);
      const uint32_t even23 = bytes_of(words[2].v[w], words[3].v[w], 0x6240);
      const uint32_t odd23 = bytes_of(words[2].v[w], words[3].v[w], 0x7351);
      const uint32_t columns[kFour] = {
          bytes_of(even01, even23, 0x5410), bytes_of(odd01, odd23, 0x5410),
          bytes_of(even01, even23, 0x7632), bytes_of(odd01, odd23, 0x7632)};
#pragma unroll
      for (int j = 0; j < kFour; ++j) {
        const int col = lane * kPack + w * kFour + j;
        const int word = four * (kWords / 2) + part;
        turned[col * kWords + (word ^ turn(col))] = columns[j];
      }
    }
  }
  __syncthreads();

  const int64_t rows = down * kSide;
  int8_t* out = qt + blockIdx.x * kSide * rows + blockIdx.y * kSide;
  constexpr int kQuads = kWords / 4;  // packs of a row of qt
#pragma unroll
  for (int i = threadIdx.x; i < kSide * kQuads; i += kThreads) {
    const int col = i / kQuads, quad = i % kQuads, shift = turn(col);
    const auto found = read<uint32_t, 4>(turned + col * kWords + (quad * 4 ^ (shift & ~3)));
    Pack<uint32_t, 4> pack;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint32_t swapped = shift & 1 ? found.v[k ^ 1] : found.v[k];
      const uint32_t crossed = shift & 1 ? found.v[k ^ 3] : found.v[k ^ 2];
      pack.v[k] = shift & 2 ? crossed : swapped;
    }
    Pack<int8_t, 16> bytes;
    bytes.bits = pack.bits;
    store<kWide, int8_t, 16>(out + col * rows + quad * 16, bytes);
  }
}

template <class T, bool kWide>
void launch(const T* x, int8_t* q, int8_t* qt, float* scale, int64_t down, int64_t across,
            hipStream_t stream) {
  const dim3 grid((unsigned)across, (unsigned)down);
  constexpr int kThreads = kSide * kSide * sizeof(T) / (16 * kItems);
  quantise_blocks<T, kWide><<<grid, dim3(kThreads), 0, stream>>>(x, q, qt, scale, down, across);
}

template <class T> hipError_t block_quant(const T* x, int8_t* q, int8_t* qt, float* scale,
                                          int64_t down, int64_t across, hipStream_t stream) {
  const uintptr_t places = (uintptr_t)x | (uintptr_t)q | (uintptr_t)qt;
  if (places % 16 == 0) {
    launch<T, true>(x, q, qt, scale, down, across, stream);
  } else {
    launch<T, false>(x, q, qt, scale, down, across, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t block_quant_f32(const float* x, int8_t* q, int8_t* qt, float* scale,
                                      int64_t down, int64_t across, hipStream_t stream) {
  return block_quant(x, q, qt, scale, down, across, stream);
}

extern "C" hipError_t block_quant_f16(const __half* x, int8_t* q, int8_t* qt, float* scale,
                                      int64_t down, int64_t across, hipStream_t stream) {
  return block_quant(x, q, qt, scale, down, across, stream);
}

extern "C" hipError_t block_quant_bf16(const __hip_bfloat16* x, int8_t* q, int8_t* qt, float* scale,
                                       int64_t down, int64_t across, hipStream_t stream) {
  return block_quant(x, q, qt, scale, down, across, stream);
}
