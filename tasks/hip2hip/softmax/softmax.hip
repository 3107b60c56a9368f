// Row-wise softmax: one block a row, three passes over it (maximum, sum of
// exponentials, output), each reduction a tree in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

// kabuild:tune kThreads = 64, 128, 256, 512, 1024
constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

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
__global__ void softmax_rows(const T* x, T* y, int64_t rows, int64_t cols) {
  __shared__ float scratch[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * cols;
    T* out = y + row * cols;

    float largest = -INFINITY;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      largest = fmaxf(largest, to_float(in[col]));
    }
    largest = block_max(largest, scratch);

    float sum = 0.0f;
    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      sum += expf(to_float(in[col]) - largest);
    }
    sum = block_sum(sum, scratch);

    for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
      out[col] = from_float<T>(expf(to_float(in[col]) - largest) / sum);
    }
  }
}

template <class T>
hipError_t softmax(const T* x, T* y, int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t blocks = rows < kMaxBlocks ? rows : kMaxBlocks;
  softmax_rows<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, y, rows, cols);
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
