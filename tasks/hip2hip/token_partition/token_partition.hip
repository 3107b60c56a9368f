// Tokens brought together: counts of kept tokens by sequence, their sums, the places of all tokens
// with a block for each sequence, and the copy of rows with a block for each.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

// Sums over all threads before the own one; ``total`` becomes that of the whole block.
__device__ int32_t sum_before(int32_t value, int32_t* scratch, int32_t* total) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int back = 1; back < kThreads; back *= 2) {
    const int32_t before = threadIdx.x >= back ? scratch[threadIdx.x - back] : 0;
    __syncthreads();
    scratch[threadIdx.x] += before;
    __syncthreads();
  }
  const int32_t result = scratch[threadIdx.x] - value;
  *total = scratch[kThreads - 1];
  __syncthreads();
  return result;
}

__global__ void count_tokens(const uint8_t* mask, int32_t* counts, int64_t seq) {
  __shared__ int32_t scratch[kThreads];
  int32_t own = 0;
  for (int64_t i = threadIdx.x; i < seq; i += kThreads) {
    own += mask[blockIdx.x * seq + i];
  }
  int32_t total = 0;
  sum_before(own, scratch, &total);
  if (threadIdx.x == 0) {
    counts[blockIdx.x] = total;
  }
}

__global__ void sum_up(const int32_t* counts, int32_t* begin, int64_t batch) {
  int32_t running = 0;
  for (int64_t i = 0; i < batch; ++i) {
    begin[i] = running;
    running += counts[i];
  }
  begin[batch] = running;
}

__global__ void find_places(const uint8_t* mask, const int32_t* begin, int32_t* place,
                            int64_t batch, int64_t seq) {
  __shared__ int32_t scratch[kThreads];
  const int64_t first = blockIdx.x * seq;
  int64_t kept = begin[blockIdx.x];
  for (int64_t start = 0; start < seq; start += kThreads) {
    const int64_t i = start + threadIdx.x;
    const int32_t stays = i < seq ? mask[first + i] : 0;
    int32_t total = 0;
    const int64_t before = kept + sum_before(stays, scratch, &total);
    if (i < seq) {
      place[stays ? before : begin[batch] + first + i - before] = (int32_t)(first + i);
    }
    kept += total;
  }
}

template <class T>
__global__ void copy_rows(const T* x, const int32_t* place, T* parted, int64_t cols) {
  const int64_t row = blockIdx.x;
  const int64_t from = place[row];
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    parted[row * cols + col] = x[from * cols + col];
  }
}

size_t token_partition_workspace(int64_t batch, int64_t seq, int64_t cols) {
  return batch * sizeof(int32_t);
}

template <class T>
hipError_t token_partition(const T* x, const uint8_t* mask, T* parted, int32_t* place,
                           int32_t* begin, int64_t batch, int64_t seq, int64_t cols,
                           void* workspace, hipStream_t stream) {
  int32_t* counts = (int32_t*)workspace;
  const dim3 threads(kThreads);
  const dim3 sequences((unsigned)batch);
  count_tokens<<<sequences, threads, 0, stream>>>(mask, counts, seq);
  sum_up<<<dim3(1), dim3(1), 0, stream>>>(counts, begin, batch);
  find_places<<<sequences, threads, 0, stream>>>(mask, begin, place, batch, seq);
  copy_rows<T><<<dim3((unsigned)(batch * seq)), threads, 0, stream>>>(x, place, parted, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t token_partition_f32(const float* x, const uint8_t* mask, float* parted,
                                          int32_t* place, int32_t* begin, int64_t batch,
                                          int64_t seq, int64_t cols, void* workspace,
                                          hipStream_t stream) {
  return token_partition(x, mask, parted, place, begin, batch, seq, cols, workspace, stream);
}

extern "C" size_t token_partition_f32_workspace(int64_t batch, int64_t seq, int64_t cols) {
  return token_partition_workspace(batch, seq, cols);
}

extern "C" hipError_t token_partition_f16(const __half* x, const uint8_t* mask, __half* parted,
                                          int32_t* place, int32_t* begin, int64_t batch,
                                          int64_t seq, int64_t cols, void* workspace,
                                          hipStream_t stream) {
  return token_partition(x, mask, parted, place, begin, batch, seq, cols, workspace, stream);
}

extern "C" size_t token_partition_f16_workspace(int64_t batch, int64_t seq, int64_t cols) {
  return token_partition_workspace(batch, seq, cols);
}

extern "C" hipError_t token_partition_bf16(const __hip_bfloat16* x, const uint8_t* mask,
                                           __hip_bfloat16* parted, int32_t* place, int32_t* begin,
                                           int64_t batch, int64_t seq, int64_t cols,
                                           void* workspace, hipStream_t stream) {
  return token_partition(x, mask, parted, place, begin, batch, seq, cols, workspace, stream);
}

extern "C" size_t token_partition_bf16_workspace(int64_t batch, int64_t seq, int64_t cols) {
  return token_partition_workspace(batch, seq, cols);
}
