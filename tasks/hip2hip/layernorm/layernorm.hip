// Layer normalisation: one block a row, three passes over it (mean, variance about
// that mean, output), each reduction a tree in shared memory.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

// kabuild:tune kThreads = 64, 128, 256, 512, 1024
constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

__device__ float block_sum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

template <class T>
__global__ void layernorm_rows(const T* x, const T* weight, const T* bias, T* y, float eps,
                               int64_t rows, int64_t cols) {
  __shared__ float scratch[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * cols;
    T* out = y + row * cols;

    float sum = 0.0f;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      sum += to_float(in[col]);
    }
    const float mean = block_sum(sum, scratch) / (float)cols;

    float squares = 0.0f;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float deviation = to_float(in[col]) - mean;
      squares += deviation * deviation;
    }
    const float variance = block_sum(squares, scratch) / (float)cols;

    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float normal = (to_float(in[col]) - mean) / sqrtf(variance + eps);
      out[col] = from_float<T>(normal * to_float(weight[col]) + to_float(bias[col]));
    }
  }
}

template <class T>
hipError_t layernorm(const T* x, const T* weight, const T* bias, T* y, float eps, int64_t rows,
                     int64_t cols, hipStream_t stream) {
  const int64_t blocks = rows < kMaxBlocks ? rows : kMaxBlocks;
  layernorm_rows<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, weight, bias, y, eps,
                                                                           rows, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t layernorm_f32(const float* x, const float* weight, const float* bias,
                                    float* y, float eps, int64_t rows, int64_t cols,
                                    hipStream_t stream) {
  return layernorm(x, weight, bias, y, eps, rows, cols, stream);
}

extern "C" hipError_t layernorm_f16(const __half* x, const __half* weight, const __half* bias,
                                    __half* y, float eps, int64_t rows, int64_t cols,
                                    hipStream_t stream) {
  return layernorm(x, weight, bias, y, eps, rows, cols, stream);
}

extern "C" hipError_t layernorm_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                     const __hip_bfloat16* bias, __hip_bfloat16* y, float eps,
                                     int64_t rows, int64_t cols, hipStream_t stream) {
  return layernorm(x, weight, bias, y, eps, rows, cols, stream);
}
