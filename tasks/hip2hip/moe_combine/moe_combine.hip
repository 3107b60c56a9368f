// Sums of experts' outputs: one block a token, whose threads walk over columns and, for each of
// them, over the token's rows.
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

template <class T>
__global__ void combine(const T* x, const int32_t* slot, const float* weight, const T* shared,
                        T* y, int64_t k, int64_t cols) {
  const int64_t token = blockIdx.x;
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    float sum = to_float(shared[token * cols + col]);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t row = slot[token * k + j];
      sum += weight[token * k + j] * to_float(x[row * cols + col]);
    }
    y[token * cols + col] = from_float<T>(sum);
  }
}

template <class T>
hipError_t moe_combine(const T* x, const int32_t* slot, const float* weight, const T* shared, T* y,
                       int64_t tokens, int64_t k, int64_t cols, hipStream_t stream) {
  combine<T><<<dim3((unsigned)tokens), dim3(kThreads), 0, stream>>>(x, slot, weight, shared, y, k,
                                                                    cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t moe_combine_f32(const float* x, const int32_t* slot, const float* weight,
                                      const float* shared, float* y, int64_t tokens, int64_t k,
                                      int64_t cols, hipStream_t stream) {
  return moe_combine(x, slot, weight, shared, y, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_f16(const __half* x, const int32_t* slot, const float* weight,
                                      const __half* shared, __half* y, int64_t tokens, int64_t k,
                                      int64_t cols, hipStream_t stream) {
  return moe_combine(x, slot, weight, shared, y, tokens, k, cols, stream);
}

extern "C" hipError_t moe_combine_bf16(const __hip_bfloat16* x, const int32_t* slot,
                                       const float* weight, const __hip_bfloat16* shared,
                                       __hip_bfloat16* y, int64_t tokens, int64_t k, int64_t cols,
                                       hipStream_t stream) {
  return moe_combine(x, slot, weight, shared, y, tokens, k, cols, stream);
}
