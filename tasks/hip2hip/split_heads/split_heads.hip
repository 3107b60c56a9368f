// Queries, keys and values to the layouts of attention: one thread for each element of x, which
// reads along rows and writes wherever the element goes.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void move_elements(const T* x, T* q, T* k, T* v, int64_t total, int64_t seq,
                              int64_t heads, int64_t dim) {
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t column = i % dim;
    const int64_t head = i / dim % heads;
    const int64_t which = i / (dim * heads) % 3;
    const int64_t token = i / (dim * heads * 3) % seq;
    const int64_t sequence = i / (dim * heads * 3 * seq);
    const int64_t place = sequence * heads + head;
    if (which == 0) {
      q[(place * seq + token) * dim + column] = x[i];
    } else if (which == 1) {
      k[(place * dim + column) * seq + token] = x[i];
    } else {
      v[(place * seq + token) * dim + column] = x[i];
    }
  }
}

template <class T>
hipError_t split_heads(const T* x, T* q, T* k, T* v, int64_t batch, int64_t seq, int64_t heads,
                      int64_t dim, hipStream_t stream) {
  const int64_t total = batch * seq * 3 * heads * dim;
  const int64_t wanted = (total + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  move_elements<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, q, k, v, total, seq,
                                                                          heads, dim);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t split_heads_f32(const float* x, float* q, float* k, float* v, int64_t batch,
                                      int64_t seq, int64_t heads, int64_t dim, hipStream_t stream) {
  return split_heads(x, q, k, v, batch, seq, heads, dim, stream);
}

extern "C" hipError_t split_heads_f16(const __half* x, __half* q, __half* k, __half* v,
                                      int64_t batch, int64_t seq, int64_t heads, int64_t dim,
                                      hipStream_t stream) {
  return split_heads(x, q, k, v, batch, seq, heads, dim, stream);
}

extern "C" hipError_t split_heads_bf16(const __hip_bfloat16* x, __hip_bfloat16* q,
                                       __hip_bfloat16* k, __hip_bfloat16* v, int64_t batch,
                                       int64_t seq, int64_t heads, int64_t dim,
                                       hipStream_t stream) {
  return split_heads(x, q, k, v, batch, seq, heads, dim, stream);
}
