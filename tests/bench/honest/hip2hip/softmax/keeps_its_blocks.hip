// Softmax by a few blocks that stay: each takes every so-many-th row.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

constexpr int kThreads = 64;
constexpr int64_t kBlocks = 24;

template <class T> __device__ void softmax_row(const T* in, T* out, float* part, int64_t cols) {
  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) top = fmaxf(top, to_float(in[c]));
  part[threadIdx.x] = top;
  __syncthreads();
  for (int i = 0; i < kThreads; ++i) top = fmaxf(top, part[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += expf(to_float(in[c]) - top);
  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < kThreads; ++i) sum += part[i];
  __syncthreads();
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    out[c] = from_float<T>(expf(to_float(in[c]) - top) / sum);
  }
}

template <class T> __global__ void stay(const T* x, T* y, int64_t rows, int64_t cols) {
  __shared__ float part[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    softmax_row(x + row * cols, y + row * cols, part, cols);
  }
}

template <class T>
hipError_t softmax(const T* x, T* y, int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t blocks = rows < kBlocks ? rows : kBlocks;
  stay<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, y, rows, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t softmax_f32(const float* x, float* y, int64_t rows, int64_t cols,
                                  hipStream_t stream) {
  return softmax(x, y, rows, cols, stream);
}

extern "C" hipError_t softmax_f16(const __half* x, __half* y, int64_t rows, int64_t cols,
                                  hipStream_t stream) {
  return softmax(x, y, rows, cols, stream);
}
