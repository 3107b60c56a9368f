// Gradients of causal attention in three kernels: the sums of the softmax and dq with a thread a
// query, then dk and dv with a thread a key. Blocks share tiles of the other side's rows.
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
__device__ void load_tile(const T* from, float (*tile)[kMostColumns], int64_t count, int64_t dim) {
  for (int64_t i = threadIdx.x; i < count * dim; i += kThreads) {
    tile[i / dim][i % dim] = to_float(from[i]);
  }
}

// Each query's largest score, the sum of exponentials beside it, and the mean of dp under p. (One
// logarithm would hold both, but of large scores it loses the sum.)
template <class T>
__global__ void statistics(const T* q, const T* k, const T* v, const T* grad, float* peaks,
                           float* totals, float* delta, float scale, int64_t group, int64_t seq,
                           int64_t dim) {
  __shared__ float keys[kTile][kMostColumns];
  __shared__ float values[kTile][kMostColumns];
  const int64_t own = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t end = (int64_t)(blockIdx.x + 1) * kThreads;
  const int64_t last = end < seq ? end : seq;
  const int64_t row = blockIdx.y * seq + own;
  const int64_t first = blockIdx.y / group * seq;
  float query[kMostColumns];
  float gradient[kMostColumns];
  for (int c = 0; c < dim; ++c) {
    query[c] = own < seq ? to_float(q[row * dim + c]) : 0.0f;
    gradient[c] = own < seq ? to_float(grad[row * dim + c]) : 0.0f;
  }

  float largest = -INFINITY;
  float total = 0.0f;
  float sum = 0.0f;
  for (int64_t start = 0; start < last; start += kTile) {
    const int64_t count = last - start < kTile ? last - start : kTile;
    load_tile(k + (first + start) * dim, keys, count, dim);
    load_tile(v + (first + start) * dim, values, count, dim);
    __syncthreads();
    for (int i = 0; i < count && start + i <= own; ++i) {
      float score = 0.0f;
      float along = 0.0f;
      for (int c = 0; c < dim; ++c) {
        score += query[c] * keys[i][c];
        along += gradient[c] * values[i][c];
      }
      const float peak = fmaxf(largest, scale * score);
      const float kept = expf(largest - peak);
      const float share = expf(scale * score - peak);
      total = total * kept + share;
      sum = sum * kept + share * along;
      largest = peak;
    }
    __syncthreads();
  }
  if (own < seq) {
    peaks[row] = largest;
    totals[row] = total;
    delta[row] = sum / total;
  }
}

template <class T>
__global__ void query_gradient(const T* q, const T* k, const T* v, const T* grad, const float* peaks,
                               const float* totals, const float* delta, T* dq, float scale,
                               int64_t group, int64_t seq, int64_t dim) {
  __shared__ float keys[kTile][kMostColumns];
  __shared__ float values[kTile][kMostColumns];
  const int64_t own = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t end = (int64_t)(blockIdx.x + 1) * kThreads;
  const int64_t last = end < seq ? end : seq;
  const int64_t row = blockIdx.y * seq + own;
  const int64_t first = blockIdx.y / group * seq;
  float query[kMostColumns];
  float gradient[kMostColumns];
  float sum[kMostColumns];
  for (int c = 0; c < dim; ++c) {
    query[c] = own < seq ? to_float(q[row * dim + c]) : 0.0f;
    gradient[c] = own < seq ? to_float(grad[row * dim + c]) : 0.0f;
    sum[c] = 0.0f;
  }

  for (int64_t start = 0; start < last; start += kTile) {
    const int64_t count = last - start < kTile ? last - start : kTile;
    load_tile(k + (first + start) * dim, keys, count, dim);
    load_tile(v + (first + start) * dim, values, count, dim);
    __syncthreads();
    for (int i = 0; own < seq && i < count && start + i <= own; ++i) {
      float score = 0.0f;
      float along = 0.0f;
      for (int c = 0; c < dim; ++c) {
        score += query[c] * keys[i][c];
        along += gradient[c] * values[i][c];
      }
      const float p = expf(scale * score - peaks[row]) / totals[row];
      const float dx = p * (along - delta[row]);
      for (int c = 0; c < dim; ++c) {
        sum[c] += dx * keys[i][c];
      }
    }
    __syncthreads();
  }
  for (int c = 0; own < seq && c < dim; ++c) {
    dq[row * dim + c] = from_float<T>(scale * sum[c]);
  }
}

template <class T>
__global__ void key_gradient(const T* q, const T* k, const T* v, const T* grad, const float* peaks,
                             const float* totals, const float* delta, T* dk, T* dv, float scale,
                             int64_t group, int64_t seq, int64_t dim) {
  __shared__ float queries[kTile][kMostColumns];
  __shared__ float gradients[kTile][kMostColumns];
  const int64_t begin = (int64_t)blockIdx.x * kThreads;
  const int64_t own = begin + threadIdx.x;
  const int64_t place = (blockIdx.y * seq + own) * dim;
  float key[kMostColumns];
  float value[kMostColumns];
  float of_key[kMostColumns];
  float of_value[kMostColumns];
  for (int c = 0; c < dim; ++c) {
    key[c] = own < seq ? to_float(k[place + c]) : 0.0f;
    value[c] = own < seq ? to_float(v[place + c]) : 0.0f;
    of_key[c] = 0.0f;
    of_value[c] = 0.0f;
  }

  for (int64_t head = blockIdx.y * group; head < (blockIdx.y + 1) * group; ++head) {
    for (int64_t start = begin; start < seq; start += kTile) {
      const int64_t count = seq - start < kTile ? seq - start : kTile;
      const int64_t row = head * seq + start;
      load_tile(q + row * dim, queries, count, dim);
      load_tile(grad + row * dim, gradients, count, dim);
      __syncthreads();
      for (int i = own > start ? (int)(own - start) : 0; i < count; ++i) {
        float score = 0.0f;
        float along = 0.0f;
        for (int c = 0; c < dim; ++c) {
          score += key[c] * queries[i][c];
          along += value[c] * gradients[i][c];
        }
        const float p = expf(scale * score - peaks[row + i]) / totals[row + i];
        const float dx = p * (along - delta[row + i]);
        for (int c = 0; c < dim; ++c) {
          of_key[c] += dx * queries[i][c];
          of_value[c] += p * gradients[i][c];
        }
      }
      __syncthreads();
    }
  }
  for (int c = 0; own < seq && c < dim; ++c) {
    dk[place + c] = from_float<T>(scale * of_key[c]);
    dv[place + c] = from_float<T>(of_value[c]);
  }
}

size_t attention_backward_workspace(int64_t batch, int64_t heads_kv, int64_t group, int64_t seq,
                                    int64_t dim) {
  return 3 * batch * heads_kv * group * seq * sizeof(float);
}

template <class T>
hipError_t attention_backward(const T* q, const T* k, const T* v, const T* grad, T* dq, T* dk,
                              T* dv, float scale, int64_t batch, int64_t heads_kv, int64_t group,
                              int64_t seq, int64_t dim, void* workspace, hipStream_t stream) {
  const int64_t heads = batch * heads_kv * group;
  float* peaks = (float*)workspace;
  float* totals = peaks + heads * seq;
  float* delta = totals + heads * seq;
  const dim3 threads(kThreads);
  const unsigned tiles = (unsigned)((seq + kThreads - 1) / kThreads);
  const dim3 of_queries(tiles, (unsigned)heads);
  statistics<T><<<of_queries, threads, 0, stream>>>(q, k, v, grad, peaks, totals, delta, scale,
                                                    group, seq, dim);
  query_gradient<T><<<of_queries, threads, 0, stream>>>(q, k, v, grad, peaks, totals, delta, dq,
                                                        scale, group, seq, dim);
  const dim3 of_keys(tiles, (unsigned)(batch * heads_kv));
  key_gradient<T><<<of_keys, threads, 0, stream>>>(q, k, v, grad, peaks, totals, delta, dk, dv,
                                                   scale, group, seq, dim);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t attention_backward_f32(const float* q, const float* k, const float* v,
                                             const float* do_, float* dq, float* dk, float* dv,
                                             float scale, int64_t batch, int64_t heads_kv,
                                             int64_t group, int64_t seq, int64_t dim,
                                             void* workspace, hipStream_t stream) {
  return attention_backward(q, k, v, do_, dq, dk, dv, scale, batch, heads_kv, group, seq, dim,
                            workspace, stream);
}

extern "C" size_t attention_backward_f32_workspace(int64_t batch, int64_t heads_kv, int64_t group,
                                                   int64_t seq, int64_t dim) {
  return attention_backward_workspace(batch, heads_kv, group, seq, dim);
}

extern "C" hipError_t attention_backward_f16(const __half* q, const __half* k, const __half* v,
                                             const __half* do_, __half* dq, __half* dk, __half* dv,
                                             float scale, int64_t batch, int64_t heads_kv,
                                             int64_t group, int64_t seq, int64_t dim,
                                             void* workspace, hipStream_t stream) {
  return attention_backward(q, k, v, do_, dq, dk, dv, scale, batch, heads_kv, group, seq, dim,
                            workspace, stream);
}

extern "C" size_t attention_backward_f16_workspace(int64_t batch, int64_t heads_kv, int64_t group,
                                                   int64_t seq, int64_t dim) {
  return attention_backward_workspace(batch, heads_kv, group, seq, dim);
}

extern "C" hipError_t attention_backward_bf16(const __hip_bfloat16* q, const __hip_bfloat16* k,
                                              const __hip_bfloat16* v, const __hip_bfloat16* do_,
                                              __hip_bfloat16* dq, __hip_bfloat16* dk,
                                              __hip_bfloat16* dv, float scale, int64_t batch,
                                              int64_t heads_kv, int64_t group, int64_t seq,
                                              int64_t dim, void* workspace, hipStream_t stream) {
  return attention_backward(q, k, v, do_, dq, dk, dv, scale, batch, heads_kv, group, seq, dim,
                            workspace, stream);
}

extern "C" size_t attention_backward_bf16_workspace(int64_t batch, int64_t heads_kv, int64_t group,
                                                    int64_t seq, int64_t dim) {
  return attention_backward_workspace(batch, heads_kv, group, seq, dim);
}
