// Gradients of weighted sums of experts' outputs: one block for each row of x, which reads its
// token's gradient, scales it and sums up its product with the row.
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
__global__ void combine_backward(const T* x, const int32_t* slot, const float* weight, const T* dy,
                                 T* dx, float* dweight, int64_t k, int64_t cols) {
  __shared__ float scratch[kThreads];
  const int64_t choice = blockIdx.x;
  const int64_t row = slot[choice];
  const int64_t token = choice / k;
  const float factor = weight[choice];
  float products = 0.0f;
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    const float gradient = to_float(dy[token * cols + col]);
    products += gradient * to_float(x[row * cols + col]);
    dx[row * cols + col] = from_float<T>(factor * gradient);
  }
  const float sum = block_sum(products, scratch);
  if (threadIdx.x == 0) {
    dweight[choice] = sum;
  }
}

template <class T>
hipError_t moe_combine_backward(const T* x, const int32_t* slot, const float* weight, const T* dy,
                                T* dx, float* dweight, int64_t tokens, int64_t k, int64_t cols,
                                hipStream_t stream) {
  combine_backward<T><<<dim3((unsigned)(tokens * k)), dim3(kThreads), 0, stream>>>(
      x, slot, weight, dy, dx, dweight, k, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t moe_combine_backward_f32(const float* x, const int32_t* slot,
                                               const float* weight, const float* dy, float* dx,
                                               float* dweight, int64_t tokens, int64_t k,
                                               int64_t cols, hipStream_t stream) {
  return moe_combine_backward(x, slot, weight, dy, dx, dweight, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_backward_f16(const __half* x, const int32_t* slot,
                                               const float* weight, const __half* dy, __half* dx,
                                               float* dweight, int64_t tokens, int64_t k,
                                               int64_t cols, hipStream_t stream) {
  return moe_combine_backward(x, slot, weight, dy, dx, dweight, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_backward_bf16(const __hip_bfloat16* x, const int32_t* slot,
                                                const float* weight, const __hip_bfloat16* dy,
                                                __hip_bfloat16* dx, float* dweight, int64_t tokens,
                                                int64_t k, int64_t cols, hipStream_t stream) {
  return moe_combine_backward(x, slot, weight, dy, dx, dweight, tokens, k, cols, stream);
}
