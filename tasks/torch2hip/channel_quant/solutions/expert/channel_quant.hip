// Quantisation to int8 by column and group of 128 rows that reads x from memory once.
//
// A block keeps 128 rows of a few columns in registers: kLanes packs of 16 bytes side by side, and
// the rows of a pack's columns among the threads with the same lane. It finds the limits of each
// column by shuffles and in shared memory, and quantises what it holds. Where rows are not aligned,
// a pack is one element. Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kGroup = 128;     // rows of a group
constexpr int kThreads = 512;
constexpr int kWave = 32;       // lanes that reduce by shuffles, also in waves of 64
constexpr int kWaves = kThreads / kWave;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

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

// (x - low) * inverse, which is in 0 .. 255, rounded to the nearest integer. Beside 2^23 float32
// has no room for a fraction, and the last byte of the sum is the integer.
__device__ uint32_t rounded(float x, float low, float inverse) {
  return __float_as_uint(fmaf(x - low, inverse, 8388608.0f));
}

// Writes the last bytes of kPack words side by side.
template <int kPack> __device__ void write_bytes(uint8_t* to, const uint32_t (&words)[kPack]) {
  if constexpr (kPack == 1) {
    *to = (uint8_t)words[0];
  } else {
    Pack<uint32_t, kPack / 4> packed;
#pragma unroll
    for (int j = 0; j < kPack; j += 4) {
      const uint32_t low = __byte_perm(words[j], words[j + 1], 0x0040);
      packed.v[j / 4] = __byte_perm(low, __byte_perm(words[j + 2], words[j + 3], 0x0040), 0x5410);
    }
    reinterpret_cast<Pack<uint32_t, kPack / 4>*>(to)->bits = packed.bits;
  }
}

template <class T, int kPack, int kLanes>
__global__ __launch_bounds__(kThreads, 2) void quantise_columns(
    const T* __restrict__ x, uint8_t* __restrict__ q, float* __restrict__ step,
    T* __restrict__ zero, int64_t cols) {
  constexpr int kWidth = kLanes * kPack;      // columns of a block
  constexpr int kRows = kThreads / kLanes;    // rows that a block loads at once
  constexpr int kItems = kGroup / kRows;      // packs of a thread
  __shared__ float lows[kWaves][kWidth], highs[kWaves][kWidth];
  __shared__ float low_of[kWidth], inverse_of[kWidth], step_of[kWidth];
  const int lane = threadIdx.x % kLanes, row = threadIdx.x / kLanes;
  const int wave = threadIdx.x / kWave;
  const int64_t first = (int64_t)blockIdx.x * kWidth, col = first + lane * kPack;
  const int64_t start = ((int64_t)blockIdx.y * kGroup + row) * cols + col;

  // Threads beyond the last column go along with zeros: all are needed at the barriers.
  Pack<T, kPack> held[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    held[i].bits = {};
    if (col < cols) held[i] = read<T, kPack>(x + start + i * kRows * cols);
  }

  float low[kPack], high[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    low[j] = high[j] = to_float(held[0].v[j]);
#pragma unroll
    for (int i = 1; i < kItems; ++i) {
      const float v = to_float(held[i].v[j]);
      low[j] = fminf(low[j], v);
      high[j] = fmaxf(high[j], v);
    }
#pragma unroll
    for (int distance = kLanes; distance < kWave; distance *= 2) {
      low[j] = fminf(low[j], __shfl_xor(low[j], distance, kWave));
      high[j] = fmaxf(high[j], __shfl_xor(high[j], distance, kWave));
    }
  }
  if (threadIdx.x % kWave < kLanes) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      // Packs lie apart, so that threads side by side write side by side.
      lows[wave][j * kLanes + lane] = low[j];
      highs[wave][j * kLanes + lane] = high[j];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kWidth; i += kThreads) {
    float least = lows[0][i], most = highs[0][i];
#pragma unroll
    for (int w = 1; w < kWaves; ++w) {
      least = fminf(least, lows[w][i]);
      most = fmaxf(most, highs[w][i]);
    }
    const float size = (most - least) / 255.0f;
    low_of[i] = least;
    step_of[i] = size;
    inverse_of[i] = size > 0.0f ? 1.0f / size : 0.0f;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kWidth && first + i < cols; i += kThreads) {
    const int place = i % kPack * kLanes + i / kPack;
    const int64_t at = (int64_t)blockIdx.y * cols + first + i;
    step[at] = step_of[place];
    zero[at] = from_float<T>(low_of[place]);
  }
  if (col >= cols) return;

  float inverse[kPack];
  bool tiny = false;  // a step has no inverse in float32
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    low[j] = low_of[j * kLanes + lane];
    inverse[j] = inverse_of[j * kLanes + lane];
    tiny = tiny || isinf(inverse[j]);
  }
  if (tiny) {
    for (int i = 0; i < kItems; ++i) {
      for (int j = 0; j < kPack; ++j) {
        const float size = step_of[j * kLanes + lane];
        const float v = to_float(x[start + i * kRows * cols + j]);
        q[start + i * kRows * cols + j] = size > 0.0f ? (uint8_t)rintf((v - low[j]) / size) : 0;
      }
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    uint32_t words[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      words[j] = rounded(to_float(held[i].v[j]), low[j], inverse[j]);
    }
    write_bytes<kPack>(q + start + i * kRows * cols, words);
  }
}

template <class T, int kPack, int kLanes>
void launch(const T* x, uint8_t* q, float* step, T* zero, int64_t groups, int64_t cols,
            hipStream_t stream) {
  const int64_t blocks = (cols + kLanes * kPack - 1) / (kLanes * kPack);
  quantise_columns<T, kPack, kLanes>
      <<<dim3((unsigned)blocks, (unsigned)groups), dim3(kThreads), 0, stream>>>(x, q, step, zero,
                                                                                cols);
}

template <class T> hipError_t channel_quant(const T* x, uint8_t* q, float* step, T* zero,
                                            int64_t groups, int64_t cols, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)q;
  if (cols % kPack == 0 && places % 16 == 0) {
    launch<T, kPack, 16>(x, q, step, zero, groups, cols, stream);
  } else {
    launch<T, 1, 32>(x, q, step, zero, groups, cols, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t channel_quant_bf16(const __hip_bfloat16* x, uint8_t* q, float* step,
                                         __hip_bfloat16* zero, int64_t groups, int64_t cols,
                                         hipStream_t stream) {
  return channel_quant(x, q, step, zero, groups, cols, stream);
}

extern "C" hipError_t channel_quant_f16(const __half* x, uint8_t* q, float* step, __half* zero,
                                        int64_t groups, int64_t cols, hipStream_t stream) {
  return channel_quant(x, q, step, zero, groups, cols, stream);
}

extern "C" hipError_t channel_quant_f32(const float* x, uint8_t* q, float* step, float* zero,
                                        int64_t groups, int64_t cols, hipStream_t stream) {
  return channel_quant(x, q, step, zero, groups, cols, stream);
}
