// RMS normalisation: one block a row, which reads it twice; squares are summed by a tree in shared
// memory.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

constexpr int kThreads = 256;

__device__ float block_sum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  return scratch[0];
}

template <class T>
__global__ void normalise(const T* x, const T* weight, T* y, float* rstd, float eps, float offset,
                          int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t start = blockIdx.x * cols;
  float squares = 0.0f;
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    const float value = to_float(x[start + col]);
    squares += value * value;
  }
  const float scale = 1.0f / sqrtf(block_sum(squares, scratch) / (float)cols + eps);
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    const float factor = offset + to_float(weight[col]);
    y[start + col] = from_float<T>(to_float(x[start + col]) * scale * factor);
  }
  if (threadIdx.x == 0) {
    rstd[blockIdx.x] = scale;
  }
}

template <class T>
hipError_t rmsnorm(const T* x, const T* weight, T* y, float* rstd, float eps, float offset,
                   int64_t rows, int64_t cols, hipStream_t stream) {
  normalise<T><<<dim3((unsigned)rows), dim3(kThreads), 0, stream>>>(x, weight, y, rstd, eps, offset,
                                                                    cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t rmsnorm_f32(const float* x, const float* weight, float* y, float* rstd,
                                  float eps, float offset, int64_t rows, int64_t cols,
                                  hipStream_t stream) {
  return rmsnorm(x, weight, y, rstd, eps, offset, rows, cols, stream);
}

extern "C" hipError_t rmsnorm_f16(const __half* x, const __half* weight, __half* y, float* rstd,
                                  float eps, float offset, int64_t rows, int64_t cols,
                                  hipStream_t stream) {
  return rmsnorm(x, weight, y, rstd, eps, offset, rows, cols, stream);
}

extern "C" hipError_t rmsnorm_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                   __hip_bfloat16* y, float* rstd, float eps, float offset,
                                   int64_t rows, int64_t cols, hipStream_t stream) {
  return rmsnorm(x, weight, y, rstd, eps, offset, rows, cols, stream);
}
