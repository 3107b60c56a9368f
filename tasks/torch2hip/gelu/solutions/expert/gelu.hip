// GELU (tanh form), at the speed of memory.
//
// 0.5 (1 + tanh u) = 1 / (1 + exp(-2 u)): one exponential and one division, and no
// cancellation for negative x. A thread moves two 16-byte packs, both loaded before
// either is used; the first block also takes what is left after the last whole pack. If
// a pointer is not aligned, a pack is one element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 2;                 // packs of a thread in one step
constexpr int64_t kStep = kThreads * kUnroll;
constexpr int64_t kMaxBlocks = 1 << 22;

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
template <class T, int kSize> union Pack {
  uint4 bits;
  T v[kSize];
};
template <class T> union Pack<T, 1> {
  T bits;
  T v[1];
};

__device__ float gelu(float x) {
  constexpr float kLinear = -2.0f * 0.7978845608028654f;  // -2 sqrt(2 / pi)
  constexpr float kCubic = kLinear * 0.044715f;
  const float exponent = x * (kLinear + kCubic * x * x);
  return x / (1.0f + __expf(exponent));
}

template <class T, int kSize>
__global__ __launch_bounds__(kThreads) void gelu_packs(const T* __restrict__ x,
                                                       T* __restrict__ y, int64_t n) {
  using Unit = Pack<T, kSize>;
  const Unit* in = reinterpret_cast<const Unit*>(x);
  Unit* out = reinterpret_cast<Unit*>(y);
  const int64_t packs = n / kSize;

  const int64_t last = packs * kSize + threadIdx.x;
  if (blockIdx.x == 0 && last < n) y[last] = from_float<T>(gelu(to_float(x[last])));

  for (int64_t start = blockIdx.x * kStep + threadIdx.x; start < packs;
       start += gridDim.x * kStep) {
    Unit units[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = start + u * kThreads;
      if (i < packs) units[u].bits = in[i].bits;
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = start + u * kThreads;
      if (i >= packs) break;
#pragma unroll
      for (int j = 0; j < kSize; ++j) units[u].v[j] = from_float<T>(gelu(to_float(units[u].v[j])));
      out[i].bits = units[u].bits;
    }
  }
}

template <class T, int kSize> void launch(const T* x, T* y, int64_t n, hipStream_t stream) {
  const int64_t blocks = (n / kSize + kStep - 1) / kStep;
  const int64_t least = blocks > 0 ? blocks : 1;
  const dim3 grid((unsigned)(least < kMaxBlocks ? least : kMaxBlocks));
  gelu_packs<T, kSize><<<grid, dim3(kThreads), 0, stream>>>(x, y, n);
}

template <class T> hipError_t gelu(const T* x, T* y, int64_t n, hipStream_t stream) {
  if ((uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0) {
    launch<T, 16 / sizeof(T)>(x, y, n, stream);
  } else {
    launch<T, 1>(x, y, n, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gelu_f32(const float* x, float* y, int64_t rows, int64_t cols,
                               hipStream_t stream) {
  return gelu(x, y, rows * cols, stream);
}

extern "C" hipError_t gelu_f16(const __half* x, __half* y, int64_t rows, int64_t cols,
                               hipStream_t stream) {
  return gelu(x, y, rows * cols, stream);
}

extern "C" hipError_t gelu_bf16(const __hip_bfloat16* x, __hip_bfloat16* y, int64_t rows,
                                int64_t cols, hipStream_t stream) {
  return gelu(x, y, rows * cols, stream);
}
