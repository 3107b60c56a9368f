// Walsh-Hadamard transforms of 128 columns: one block a transform, seven steps of sums and
// differences in shared memory.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }
__device__ float to_float(float v) { return v; }

template <class T> __device__ T from_float(float v);
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}
template <> __device__ float from_float<float>(float v) { return v; }

constexpr int kSize = 128;
constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void transform(const T* x, const int8_t* sign, T* y, int64_t total, int64_t groups) {
  __shared__ float values[kSize];
  const int lane = threadIdx.x;
  for (int64_t group = blockIdx.x; group < total; group += gridDim.x) {
    const int64_t i = group * kSize + lane;
    values[lane] = to_float(x[i]) * (float)sign[group % groups * kSize + lane];
    __syncthreads();
    for (int apart = 1; apart < kSize; apart *= 2) {
      const float own = values[lane];
      const float other = values[lane ^ apart];
      __syncthreads();
      values[lane] = (lane & apart) ? other - own : own + other;
      __syncthreads();
    }
    y[i] = from_float<T>(values[lane] * 0.08838834764831845f);
    __syncthreads();
  }
}

template <class T>
hipError_t hadamard(const T* x, const int8_t* sign, T* y, int64_t rows, int64_t groups,
                    hipStream_t stream) {
  const int64_t total = rows * groups;
  const int64_t blocks = total < kMaxBlocks ? total : kMaxBlocks;
  transform<T><<<dim3((unsigned)blocks), dim3(kSize), 0, stream>>>(x, sign, y, total, groups);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t hadamard_f16(const __half* x, const int8_t* sign, __half* y, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return hadamard(x, sign, y, rows, groups, stream);
}

extern "C" hipError_t hadamard_bf16(const __hip_bfloat16* x, const int8_t* sign, __hip_bfloat16* y,
                                    int64_t rows, int64_t groups, hipStream_t stream) {
  return hadamard(x, sign, y, rows, groups, stream);
}

extern "C" hipError_t hadamard_f32(const float* x, const int8_t* sign, float* y, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return hadamard(x, sign, y, rows, groups, stream);
}
