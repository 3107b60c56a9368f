// Gradients of weighted sums of experts' outputs: a block a token, whose gradient stays in its
// registers. For each of the token's rows it writes the scaled gradient and sums up the product,
// while the next row arrives. Sums over a block's waves are left to the end, with one barrier.
//
// Where rows are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;  // lanes that reduce by shuffles, also in waves of 64
constexpr int kMost = 16;  // rows of a token

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// One element, or as many as 16 bytes hold. They are moved as `bits`: a compiler may cut a copy of
// the elements into pieces.
template <class T, int kPack> union Pack {
  uint4 bits;
  T v[kPack];
};
template <class T> union Pack<T, 1> {
  T bits;
  T v[1];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

template <class T, int kPack, int kThreads, int kItems>
__global__ __launch_bounds__(kThreads) void combine_backward(
    const T* __restrict__ x, const int32_t* __restrict__ slot, const float* __restrict__ weight,
    const T* __restrict__ dy, T* __restrict__ dx, float* __restrict__ dweight, int k, int cols) {
  constexpr int kWaves = kThreads / kWave;
  constexpr bool kAhead = kThreads < 512;  // else registers are too few
  constexpr int kPart = kAhead ? kItems : kItems / 2;  // packs of a row in flight
  __shared__ float partial[kMost][kWaves];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  const int64_t token = blockIdx.x;
  const auto column = [&](int item) { return (item * kThreads + (int)threadIdx.x) * kPack; };
  const auto request = [&](const T* row, int first, Pack<T, kPack>* packs, int count) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (column(first + i) < cols) packs[i] = read<T, kPack>(row + column(first + i));
    }
  };

  Pack<T, kPack> gradient[kItems], next[kPart];
  request(dy + token * cols, 0, gradient, kItems);
  // Each lane has one row's place and weight, so that no row waits for its place.
  const int32_t places = lane < k ? slot[token * k + lane] : 0;
  const float weights = lane < k ? weight[token * k + lane] : 0.0f;
  int64_t place = __shfl(places, 0, kWave);
  if constexpr (kAhead) request(x + place * cols, 0, next, kPart);
#pragma unroll 1
  for (int j = 0; j < k; ++j) {
    const int64_t start = place * cols;
    const float factor = __shfl(weights, j, kWave);
    if (j + 1 < k) place = __shfl(places, j + 1, kWave);
    float products = 0.0f;
#pragma unroll
    for (int first = 0; first < kItems; first += kPart) {
      Pack<T, kPack> present[kPart];
      if constexpr (kAhead) {
#pragma unroll
        for (int i = 0; i < kPart; ++i) present[i] = next[i];
        if (j + 1 < k) request(x + place * cols, 0, next, kPart);
      } else {
        request(x + start, first, present, kPart);
      }
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
        if (column(first + i) >= cols) continue;
        Pack<T, kPack> result;
#pragma unroll
        for (int e = 0; e < kPack; ++e) {
          const float of_token = to_float(gradient[first + i].v[e]);
          products += of_token * to_float(present[i].v[e]);
          result.v[e] = from_float<T>(factor * of_token);
        }
        write<T, kPack>(dx + start + column(first + i), result);
      }
    }
#pragma unroll
    for (int distance = kWave / 2; distance > 0; distance /= 2) {
      products += __shfl_xor(products, distance, kWave);
    }
    if (lane == 0) partial[j][wave] = products;
  }
  __syncthreads();
  if ((int)threadIdx.x >= k) return;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kWaves; ++i) sum += partial[threadIdx.x][i];
  dweight[token * k + threadIdx.x] = sum;
}

template <class T, int kPack>
void by_length(const T* x, const int32_t* slot, const float* weight, const T* dy, T* dx,
               float* dweight, int64_t tokens, int k, int cols, hipStream_t stream) {
  const auto start = [&](auto kernel, int threads) {
    kernel<<<dim3((unsigned)tokens), dim3(threads), 0, stream>>>(x, slot, weight, dy, dx, dweight,
                                                                 k, cols);
  };
  constexpr int kOne = kPack > 1 ? 1 : 4;  // packs that a thread holds at least
  const int packs = cols / kPack;
  if (packs <= 32 * kOne) return start(combine_backward<T, kPack, 32, kOne>, 32);
  if (packs <= 128 * kOne) return start(combine_backward<T, kPack, 128, kOne>, 128);
  if (packs <= 256 * kOne) return start(combine_backward<T, kPack, 256, kOne>, 256);
  if (packs <= 512 * kOne) return start(combine_backward<T, kPack, 256, 2 * kOne>, 256);
  if (packs <= 1024 * kOne) return start(combine_backward<T, kPack, 256, 4 * kOne>, 256);
  start(combine_backward<T, kPack, 512, 8 * kOne>, 512);
}

template <class T>
hipError_t moe_combine_backward(const T* x, const int32_t* slot, const float* weight, const T* dy,
                                T* dx, float* dweight, int64_t tokens, int64_t k, int64_t cols,
                                hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)dy | (uintptr_t)dx;
  const bool aligned = cols % kPack == 0 && places % 16 == 0;
  const auto start = aligned ? by_length<T, kPack> : by_length<T, 1>;
  start(x, slot, weight, dy, dx, dweight, tokens, (int)k, (int)cols, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t moe_combine_backward_f32(const float* x, const int32_t* slot,
                                               const float* weight, const float* dy, float* dx,
                                               float* dweight, int64_t tokens, int64_t k,
                                               int64_t cols, hipStream_t stream) {
  return moe_combine_backward(x, slot, weight, dy, dx, dweight, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_backward_f16(const __half* x, const int32_t* slot,
                                               const float* weight, const __half* dy, __half* dx,
                                               float* dweight, int64_t tokens, int64_t k,
                                               int64_t cols, hipStream_t stream) {
  return moe_combine_backward(x, slot, weight, dy, dx, dweight, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_backward_bf16(const __hip_bfloat16* x, const int32_t* slot,
                                                const float* weight, const __hip_bfloat16* dy,
                                                __hip_bfloat16* dx, float* dweight, int64_t tokens,
                                                int64_t k, int64_t cols, hipStream_t stream) {
  return moe_combine_backward(x, slot, weight, dy, dx, dweight, tokens, k, cols, stream);
}
