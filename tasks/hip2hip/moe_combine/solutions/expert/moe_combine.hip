// Sums of experts' outputs: a thread computes one pack of 16 bytes of a token, and requests that
// pack of up to eight of the token's rows before it adds the first. Where rows are not aligned, a
// pack is one element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 128;

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

// kRows rows are in flight. A block has a part of one token.
template <class T, int kPack, int kRows>
__global__ __launch_bounds__(kThreads) void combine(
    const T* __restrict__ x, const int32_t* __restrict__ slot, const float* __restrict__ weight,
    const T* __restrict__ shared, T* __restrict__ y, int k, int cols, unsigned parts) {
  const int64_t token = blockIdx.x / parts;
  const int col = (int)(blockIdx.x % parts * kThreads + threadIdx.x) * kPack;
  if (col >= cols) return;
  const Pack<T, kPack> first = read<T, kPack>(shared + token * cols + col);
  const int32_t* slots = slot + token * k;
  const float* weights = weight + token * k;

  float sums[kPack];
#pragma unroll 1
  for (int begin = 0; begin < k; begin += kRows) {
    Pack<T, kPack> packs[kRows];
    float factors[kRows];
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (begin + j >= k) continue;
      factors[j] = weights[begin + j];
      packs[j] = read<T, kPack>(x + (int64_t)slots[begin + j] * cols + col);
    }
    if (begin == 0) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) sums[i] = to_float(first.v[i]);
    }
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (begin + j >= k) continue;
#pragma unroll
      for (int i = 0; i < kPack; ++i) sums[i] += factors[j] * to_float(packs[j].v[i]);
    }
  }
  Pack<T, kPack> result;
#pragma unroll
  for (int i = 0; i < kPack; ++i) result.v[i] = from_float<T>(sums[i]);
  write<T, kPack>(y + token * cols + col, result);
}

template <class T, int kPack>
void by_rows(const T* x, const int32_t* slot, const float* weight, const T* shared, T* y,
             int64_t tokens, int k, int cols, hipStream_t stream) {
  const unsigned parts = (unsigned)((cols / kPack + kThreads - 1) / kThreads);
  const auto start = [&](auto kernel) {
    kernel<<<dim3((unsigned)tokens * parts), dim3(kThreads), 0, stream>>>(x, slot, weight, shared,
                                                                          y, k, cols, parts);
  };
  if (k <= 2) return start(combine<T, kPack, 2>);
  if (k <= 4) return start(combine<T, kPack, 4>);
  start(combine<T, kPack, 8>);
}

template <class T>
hipError_t moe_combine(const T* x, const int32_t* slot, const float* weight, const T* shared, T* y,
                       int64_t tokens, int64_t k, int64_t cols, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)shared | (uintptr_t)y;
  const bool aligned = cols % kPack == 0 && places % 16 == 0;
  const auto start = aligned ? by_rows<T, kPack> : by_rows<T, 1>;
  start(x, slot, weight, shared, y, tokens, (int)k, (int)cols, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t moe_combine_f32(const float* x, const int32_t* slot, const float* weight,
                                      const float* shared, float* y, int64_t tokens, int64_t k,
                                      int64_t cols, hipStream_t stream) {
  return moe_combine(x, slot, weight, shared, y, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_f16(const __half* x, const int32_t* slot, const float* weight,
                                      const __half* shared, __half* y, int64_t tokens, int64_t k,
                                      int64_t cols, hipStream_t stream) {
  return moe_combine(x, slot, weight, shared, y, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_bf16(const __hip_bfloat16* x, const int32_t* slot,
                                       const float* weight, const __hip_bfloat16* shared,
                                       __hip_bfloat16* y, int64_t tokens, int64_t k, int64_t cols,
                                       hipStream_t stream) {
  return moe_combine(x, slot, weight, shared, y, tokens, k, cols, stream);
}
