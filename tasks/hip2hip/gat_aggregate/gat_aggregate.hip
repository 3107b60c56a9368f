// Attention over neighbours: one block for each node, whose threads share its features. Each thread
// finds the largest score of its head, and then sums up.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <math.h>
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

constexpr int kThreads = 128;
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ float leaky(float score) { return score > 0.0f ? score : 0.2f * score; }

template <class T>
__global__ void aggregate(const int32_t* begin, const int32_t* source, const float* to_score,
                          const float* from_score, const T* x, T* y, int64_t nodes, int64_t heads,
                          int64_t dim) {
  for (int64_t node = blockIdx.x; node < nodes; node += gridDim.x) {
    const int32_t first = begin[node];
    const int32_t last = begin[node + 1];
    for (int64_t column = threadIdx.x; column < heads * dim; column += kThreads) {
      const int64_t head = column / dim;
      const float own = to_score[node * heads + head];
      float peak = -INFINITY;
      for (int32_t edge = first; edge < last; ++edge) {
        peak = fmaxf(peak, leaky(own + from_score[source[edge] * heads + head]));
      }
      float total = 0.0f;
      float sum = 0.0f;
      for (int32_t edge = first; edge < last; ++edge) {
        const int64_t other = source[edge];
        const float weight = expf(leaky(own + from_score[other * heads + head]) - peak);
        total += weight;
        sum += weight * to_float(x[other * heads * dim + column]);
      }
      y[node * heads * dim + column] = from_float<T>(total > 0.0f ? sum / total : 0.0f);
    }
  }
}

template <class T>
hipError_t gat_aggregate(const int32_t* begin, const int32_t* source, const float* to_score,
                         const float* from_score, const T* x, T* y, int64_t nodes, int64_t edges,
                         int64_t heads, int64_t dim, hipStream_t stream) {
  const int64_t blocks = nodes < kMaxBlocks ? nodes : kMaxBlocks;
  aggregate<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(
      begin, source, to_score, from_score, x, y, nodes, heads, dim);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gat_aggregate_f32(const int32_t* begin, const int32_t* source,
                                        const float* to_score, const float* from_score,
                                        const float* x, float* y, int64_t nodes, int64_t edges,
                                        int64_t heads, int64_t dim, hipStream_t stream) {
  return gat_aggregate(begin, source, to_score, from_score, x, y, nodes, edges, heads, dim, stream);
}

extern "C" hipError_t gat_aggregate_f16(const int32_t* begin, const int32_t* source,
                                        const float* to_score, const float* from_score,
                                        const __half* x, __half* y, int64_t nodes, int64_t edges,
                                        int64_t heads, int64_t dim, hipStream_t stream) {
  return gat_aggregate(begin, source, to_score, from_score, x, y, nodes, edges, heads, dim, stream);
}

extern "C" hipError_t gat_aggregate_bf16(const int32_t* begin, const int32_t* source,
                                         const float* to_score, const float* from_score,
                                         const __hip_bfloat16* x, __hip_bfloat16* y, int64_t nodes,
                                         int64_t edges, int64_t heads, int64_t dim,
                                         hipStream_t stream) {
  return gat_aggregate(begin, source, to_score, from_score, x, y, nodes, edges, heads, dim, stream);
}
