// Residual addition and layer normalisation: one block a row, three passes over it (sum and
// mean, variance about that mean, output), each reduction a tree in shared memory.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

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

constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void add_layernorm_rows(const T* x, const T* residual, const T* weight, const T* bias,
                                   T* total, T* y, float eps, int64_t rows, int64_t cols) {
  __shared__ float scratch[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t start = row * cols;

    float sum = 0.0f;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float added = to_float(x[start + col]) + to_float(residual[start + col]);
      total[start + col] = from_float<T>(added);
      sum += added;
    }
    const float mean = block_sum(sum, scratch) / (float)cols;

    float squares = 0.0f;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float added = to_float(x[start + col]) + to_float(residual[start + col]);
      squares += (added - mean) * (added - mean);
    }
    const float spread = sqrtf(block_sum(squares, scratch) / (float)cols + eps);

    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float added = to_float(x[start + col]) + to_float(residual[start + col]);
      const float normal = (added - mean) / spread;
      y[start + col] = from_float<T>(normal * to_float(weight[col]) + to_float(bias[col]));
    }
  }
}

template <class T>
hipError_t add_layernorm(const T* x, const T* residual, const T* weight, const T* bias, T* total,
                         T* y, float eps, int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t blocks = rows < kMaxBlocks ? rows : kMaxBlocks;
  add_layernorm_rows<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(
      x, residual, weight, bias, total, y, eps, rows, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t add_layernorm_f32(const float* x, const float* residual, const float* weight,
                                        const float* bias, float* total, float* y, float eps,
                                        int64_t rows, int64_t cols, hipStream_t stream) {
  return add_layernorm(x, residual, weight, bias, total, y, eps, rows, cols, stream);
}

extern "C" hipError_t add_layernorm_f16(const __half* x, const __half* residual,
                                        const __half* weight, const __half* bias, __half* total,
                                        __half* y, float eps, int64_t rows, int64_t cols,
                                        hipStream_t stream) {
  return add_layernorm(x, residual, weight, bias, total, y, eps, rows, cols, stream);
}

extern "C" hipError_t add_layernorm_bf16(const __hip_bfloat16* x, const __hip_bfloat16* residual,
                                         const __hip_bfloat16* weight, const __hip_bfloat16* bias,
                                         __hip_bfloat16* total, __hip_bfloat16* y, float eps,
                                         int64_t rows, int64_t cols, hipStream_t stream) {
  return add_layernorm(x, residual, weight, bias, total, y, eps, rows, cols, stream);
}
