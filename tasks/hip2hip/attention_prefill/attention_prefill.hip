// Causal attention: one thread a query, which keeps its sums while it walks over the keys with a
// running maximum. A block shares tiles of keys and values in shared memory.
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

constexpr int kThreads = 64;
constexpr int kTile = 32;
constexpr int kMostColumns = 128;

template <class T>
__global__ void attend(const T* q, const T* k, const T* v, T* o, float* lse, float scale,
                       int64_t group, int64_t seq, int64_t dim) {
  __shared__ float keys[kTile][kMostColumns];
  __shared__ float values[kTile][kMostColumns];
  const int64_t own = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t end = (int64_t)(blockIdx.x + 1) * kThreads;
  const int64_t last = end < seq ? end : seq;
  const int64_t head = blockIdx.y;
  const int64_t row = head * seq + own;
  const int64_t first = head / group * seq;
  float query[kMostColumns];
  float sum[kMostColumns];
  for (int c = 0; c < dim; ++c) {
    query[c] = own < seq ? to_float(q[row * dim + c]) * scale : 0.0f;
    sum[c] = 0.0f;
  }

  float largest = -INFINITY;
  float total = 0.0f;
  for (int64_t start = 0; start < last; start += kTile) {
    const int64_t count = last - start < kTile ? last - start : kTile;
    for (int64_t i = threadIdx.x; i < count * dim; i += kThreads) {
      keys[i / dim][i % dim] = to_float(k[(first + start) * dim + i]);
      values[i / dim][i % dim] = to_float(v[(first + start) * dim + i]);
    }
    __syncthreads();
    for (int i = 0; i < count && start + i <= own; ++i) {
      float score = 0.0f;
      for (int c = 0; c < dim; ++c) {
        score += query[c] * keys[i][c];
      }
      const float peak = fmaxf(largest, score);
      const float kept = expf(largest - peak);
      const float share = expf(score - peak);
      total = total * kept + share;
      for (int c = 0; c < dim; ++c) {
        sum[c] = sum[c] * kept + share * values[i][c];
      }
      largest = peak;
    }
    __syncthreads();
  }
  if (own < seq) {
    for (int c = 0; c < dim; ++c) {
      o[row * dim + c] = from_float<T>(sum[c] / total);
    }
    lse[row] = largest + logf(total);
  }
}

template <class T>
hipError_t attention_prefill(const T* q, const T* k, const T* v, T* o, float* lse, float scale,
                             int64_t batch, int64_t heads_kv, int64_t group, int64_t seq,
                             int64_t dim, hipStream_t stream) {
  const int64_t tiles = (seq + kThreads - 1) / kThreads;
  const dim3 blocks((unsigned)tiles, (unsigned)(batch * heads_kv * group));
  attend<T><<<blocks, dim3(kThreads), 0, stream>>>(q, k, v, o, lse, scale, group, seq, dim);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t attention_prefill_f32(const float* q, const float* k, const float* v,
                                            float* o, float* lse, float scale, int64_t batch,
                                            int64_t heads_kv, int64_t group, int64_t seq,
                                            int64_t dim, hipStream_t stream) {
  return attention_prefill(q, k, v, o, lse, scale, batch, heads_kv, group, seq, dim, stream);
}

extern "C" hipError_t attention_prefill_f16(const __half* q, const __half* k, const __half* v,
                                            __half* o, float* lse, float scale, int64_t batch,
                                            int64_t heads_kv, int64_t group, int64_t seq,
                                            int64_t dim, hipStream_t stream) {
  return attention_prefill(q, k, v, o, lse, scale, batch, heads_kv, group, seq, dim, stream);
}

extern "C" hipError_t attention_prefill_bf16(const __hip_bfloat16* q, const __hip_bfloat16* k,
                                             const __hip_bfloat16* v, __hip_bfloat16* o, float* lse,
                                             float scale, int64_t batch, int64_t heads_kv,
                                             int64_t group, int64_t seq, int64_t dim,
                                             hipStream_t stream) {
  return attention_prefill(q, k, v, o, lse, scale, batch, heads_kv, group, seq, dim, stream);
}
