// Quantisation of rows to int8: one block a row, one pass for its largest element, another for
// its steps.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

__device__ float block_max(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void quantise_rows(const T* x, const float* smooth, int8_t* q, float* scale,
                              int64_t rows, int64_t cols) {
  __shared__ float scratch[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t start = row * cols;

    float largest = 0.0f;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      largest = fmaxf(largest, fabsf(to_float(x[start + col]) / smooth[col]));
    }
    const float step = block_max(largest, scratch) / 127.0f;
    if (threadIdx.x == 0) {
      scale[row] = step;
    }

    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      const float steps = step > 0.0f ? to_float(x[start + col]) / smooth[col] / step : 0.0f;
      q[start + col] = (int8_t)fminf(fmaxf(rintf(steps), -127.0f), 127.0f);
    }
  }
}

template <class T>
hipError_t token_quant(const T* x, const float* smooth, int8_t* q, float* scale, int64_t rows,
                       int64_t cols, hipStream_t stream) {
  const int64_t blocks = rows < kMaxBlocks ? rows : kMaxBlocks;
  quantise_rows<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, smooth, q, scale, rows,
                                                                          cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t token_quant_f32(const float* x, const float* smooth, int8_t* q, float* scale,
                                      int64_t rows, int64_t cols, hipStream_t stream) {
  return token_quant(x, smooth, q, scale, rows, cols, stream);
}

extern "C" hipError_t token_quant_f16(const __half* x, const float* smooth, int8_t* q, float* scale,
                                      int64_t rows, int64_t cols, hipStream_t stream) {
  return token_quant(x, smooth, q, scale, rows, cols, stream);
}

extern "C" hipError_t token_quant_bf16(const __hip_bfloat16* x, const float* smooth, int8_t* q,
                                       float* scale, int64_t rows, int64_t cols,
                                       hipStream_t stream) {
  return token_quant(x, smooth, q, scale, rows, cols, stream);
}
