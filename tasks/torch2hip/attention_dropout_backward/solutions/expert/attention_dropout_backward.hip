// Gradients of softmax behind dropout that read each row once: as few lanes a row as hold it in
// registers, 8 to 32, which reduce by shuffles, or a block of up to 1024. A lane requests all its
// packs of the three tensors before it looks at one, so that what is on its way hides its latency.
//
// Where rows are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of short rows

constexpr int threads(int lanes) { return lanes <= kWave ? kBlock : lanes; }

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
template <> struct Word<8> { using Type = uint2; };
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

// The sum of the values of the kLanes lanes of a row.
template <int kLanes> __device__ float row_sum(float value, float* scratch) {
  constexpr int kShuffled = kLanes < kWave ? kLanes : kWave;
#pragma unroll
  for (int distance = kShuffled / 2; distance > 0; distance /= 2) {
    value += __shfl_xor(value, distance, kWave);
  }
  if constexpr (kLanes > kWave) {
    constexpr int kWaves = kLanes / kWave;
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
    __syncthreads();
    value = scratch[threadIdx.x % kWaves];
#pragma unroll
    for (int distance = kWaves / 2; distance > 0; distance /= 2) {
      value += __shfl_xor(value, distance, kWave);
    }
  }
  return value;
}

template <class T, int kPack, int kLanes, int kItems>
__global__ __launch_bounds__(threads(kLanes)) void gradients(
    const T* __restrict__ p, const uint8_t* __restrict__ kept, const T* __restrict__ dz,
    T* __restrict__ dx, float scale, float grow, int64_t rows, int cols) {
  __shared__ float scratch[kWave];
  constexpr int kRows = threads(kLanes) / kLanes;
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  if (row >= rows) return;
  const int64_t start = row * cols;
  const auto column = [&](int item) { return (item * kLanes + (int)threadIdx.x % kLanes) * kPack; };

  Pack<T, kPack> share[kItems], gradient[kItems];
  Pack<uint8_t, kPack> mask[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) >= cols) continue;
    share[i] = read<T, kPack>(p + start + column(i));
    gradient[i] = read<T, kPack>(dz + start + column(i));
    mask[i] = read<uint8_t, kPack>(kept + start + column(i));
  }

  float products = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) >= cols) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float g = mask[i].v[j] != 0 ? to_float(gradient[i].v[j]) : 0.0f;
      products += to_float(share[i].v[j]) * g;
    }
  }
  // All gradients have the factor 1 / (1 - drop): it is left to the end.
  const float along = row_sum<kLanes>(products, scratch), factor = scale * grow;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) >= cols) continue;
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float g = mask[i].v[j] != 0 ? to_float(gradient[i].v[j]) : 0.0f;
      result.v[j] = from_float<T>(factor * to_float(share[i].v[j]) * (g - along));
    }
    write<T, kPack>(dx + start + column(i), result);
  }
}

template <class T, int kPack>
void by_length(const T* p, const uint8_t* kept, const T* dz, T* dx, float scale, float grow,
               int64_t rows, int cols, hipStream_t stream) {
  const auto start = [&](auto kernel, int lanes) {
    const int64_t rows_of_block = threads(lanes) / lanes;
    const dim3 grid((unsigned)((rows + rows_of_block - 1) / rows_of_block));
    kernel<<<grid, dim3(threads(lanes)), 0, stream>>>(p, kept, dz, dx, scale, grow, rows, cols);
  };
  // A pack of each of two tensors: two of both are four packs of 16 bytes on their way.
  constexpr int kItems = kPack > 1 ? 2 : 8;
  const int packs = cols / kPack;
  if (packs <= 8 * kItems) return start(gradients<T, kPack, 8, kItems>, 8);
  if (packs <= 16 * kItems) return start(gradients<T, kPack, 16, kItems>, 16);
  if (packs <= 32 * kItems) return start(gradients<T, kPack, 32, kItems>, 32);
  if constexpr (kPack > 1) {  // more for a lane, but no barrier
    if (packs <= 32 * 4) return start(gradients<T, kPack, 32, 4>, 32);
  }
  if (packs <= 128 * kItems) return start(gradients<T, kPack, 128, kItems>, 128);
  if (packs <= 256 * kItems) return start(gradients<T, kPack, 256, kItems>, 256);
  if (packs <= 512 * kItems) return start(gradients<T, kPack, 512, kItems>, 512);
  if (packs <= 1024 * kItems) return start(gradients<T, kPack, 1024, kItems>, 1024);
  start(gradients<T, kPack, 1024, 2 * kItems>, 1024);
}

template <class T> hipError_t attention_dropout_backward(const T* p, const uint8_t* kept,
                                                         const T* dz, T* dx, float scale,
                                                         float drop, int64_t rows, int64_t cols,
                                                         hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)p | (uintptr_t)kept | (uintptr_t)dz | (uintptr_t)dx;
  const bool aligned = cols % kPack == 0 && places % 16 == 0;
  const auto start = aligned ? by_length<T, kPack> : by_length<T, 1>;
  start(p, kept, dz, dx, scale, 1.0f / (1.0f - drop), rows, (int)cols, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t attention_dropout_backward_f32(const float* p, const uint8_t* kept,
                                                     const float* dz, float* dx, float scale,
                                                     float drop, int64_t rows, int64_t cols,
                                                     hipStream_t stream) {
  return attention_dropout_backward(p, kept, dz, dx, scale, drop, rows, cols, stream);
}

extern "C" hipError_t attention_dropout_backward_f16(const __half* p, const uint8_t* kept,
                                                     const __half* dz, __half* dx, float scale,
                                                     float drop, int64_t rows, int64_t cols,
                                                     hipStream_t stream) {
  return attention_dropout_backward(p, kept, dz, dx, scale, drop, rows, cols, stream);
}

extern "C" hipError_t attention_dropout_backward_bf16(const __hip_bfloat16* p, const uint8_t* kept,
                                                      const __hip_bfloat16* dz, __hip_bfloat16* dx,
                                                      float scale, float drop, int64_t rows,
                                                      int64_t cols, hipStream_t stream) {
  return attention_dropout_backward(p, kept, dz, dx, scale, drop, rows, cols, stream);
}
