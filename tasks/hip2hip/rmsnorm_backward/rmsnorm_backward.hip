// Gradients of RMS normalisation: one kernel with a block for each row, which is read twice, and
// one with a thread for each column, which walks down over all rows.
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
__global__ void input_gradient(const T* x, const T* weight, const float* rstd, const T* dy, T* dx,
                               int64_t rows, int64_t cols) {
  __shared__ float scratch[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t start = row * cols;
    const float scale = rstd[row];

    float products = 0.0f;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float normal = to_float(x[start + col]) * scale;
      products += to_float(dy[start + col]) * to_float(weight[col]) * normal;
    }
    const float along = block_sum(products, scratch) / (float)cols;

    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float normal = to_float(x[start + col]) * scale;
      const float gradient = to_float(dy[start + col]) * to_float(weight[col]);
      dx[start + col] = from_float<T>(scale * (gradient - normal * along));
    }
  }
}

template <class T>
__global__ void weight_gradient(const T* x, const float* rstd, const T* dy, float* dweight,
                                int64_t rows, int64_t cols) {
  const int64_t col = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (col >= cols) {
    return;
  }
  float sum = 0.0f;
  for (int64_t row = 0; row < rows; ++row) {
    sum += to_float(dy[row * cols + col]) * (to_float(x[row * cols + col]) * rstd[row]);
  }
  dweight[col] = sum;
}

template <class T>
hipError_t rmsnorm_backward(const T* x, const T* weight, const float* rstd, const T* dy, T* dx,
                            float* dweight, int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t blocks = rows < kMaxBlocks ? rows : kMaxBlocks;
  input_gradient<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, weight, rstd, dy, dx,
                                                                           rows, cols);
  const int64_t columns = (cols + kThreads - 1) / kThreads;
  weight_gradient<T><<<dim3((unsigned)columns), dim3(kThreads), 0, stream>>>(x, rstd, dy, dweight,
                                                                             rows, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t rmsnorm_backward_f32(const float* x, const float* weight, const float* rstd,
                                           const float* dy, float* dx, float* dweight, int64_t rows,
                                           int64_t cols, hipStream_t stream) {
  return rmsnorm_backward(x, weight, rstd, dy, dx, dweight, rows, cols, stream);
}

extern "C" hipError_t rmsnorm_backward_f16(const __half* x, const __half* weight, const float* rstd,
                                           const __half* dy, __half* dx, float* dweight,
                                           int64_t rows, int64_t cols, hipStream_t stream) {
  return rmsnorm_backward(x, weight, rstd, dy, dx, dweight, rows, cols, stream);
}

extern "C" hipError_t rmsnorm_backward_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                            const float* rstd, const __hip_bfloat16* dy,
                                            __hip_bfloat16* dx, float* dweight, int64_t rows,
                                            int64_t cols, hipStream_t stream) {
  return rmsnorm_backward(x, weight, rstd, dy, dx, dweight, rows, cols, stream);
}
