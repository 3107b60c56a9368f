// Weighted sums of rows: one block for each bag, whose threads walk over columns and, for each of
// them, over the bag's entries.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 128;

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
__global__ void sum_bags(const T* table, const int64_t* id, const float* weight,
                         const int64_t* offset, T* y, int64_t cols) {
  const int64_t bag = blockIdx.x;
  const int64_t begin = offset[bag];
  const int64_t end = offset[bag + 1];
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    float sum = 0.0f;
    for (int64_t i = begin; i < end; ++i) {
      sum += weight[i] * to_float(table[id[i] * cols + col]);
    }
    y[bag * cols + col] = from_float<T>(sum);
  }
}

template <class T>
hipError_t embedding_bag(const T* table, const int64_t* id, const float* weight,
                         const int64_t* offset, T* y, int64_t vocab, int64_t cols, int64_t count,
                         int64_t bags, hipStream_t stream) {
  sum_bags<T><<<dim3((unsigned)bags), dim3(kThreads), 0, stream>>>(table, id, weight, offset, y,
                                                                   cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t embedding_bag_f32(const float* table, const int64_t* id, const float* weight,
                                        const int64_t* offset, float* y, int64_t vocab,
                                        int64_t cols, int64_t count, int64_t bags,
                                        hipStream_t stream) {
  return embedding_bag(table, id, weight, offset, y, vocab, cols, count, bags, stream);
}

extern "C" hipError_t embedding_bag_f16(const __half* table, const int64_t* id, const float* weight,
                                        const int64_t* offset, __half* y, int64_t vocab,
                                        int64_t cols, int64_t count, int64_t bags,
                                        hipStream_t stream) {
  return embedding_bag(table, id, weight, offset, y, vocab, cols, count, bags, stream);
}

extern "C" hipError_t embedding_bag_bf16(const __hip_bfloat16* table, const int64_t* id,
                                         const float* weight, const int64_t* offset,
                                         __hip_bfloat16* y, int64_t vocab, int64_t cols,
                                         int64_t count, int64_t bags, hipStream_t stream) {
  return embedding_bag(table, id, weight, offset, y, vocab, cols, count, bags, stream);
}
