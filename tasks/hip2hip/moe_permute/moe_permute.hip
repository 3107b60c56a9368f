// Tokens ordered by expert, in three kernels: how many choices each expert has, which place each
// choice has, and the copies of rows.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kMaxExperts = 512;

// One block counts the choices of all experts.
__global__ void count_choices(const int32_t* expert, int32_t* count, int64_t choices,
                              int64_t experts) {
  __shared__ int32_t counts[kMaxExperts];
  for (int64_t e = threadIdx.x; e < experts; e += kThreads) {
    counts[e] = 0;
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < choices; i += kThreads) {
    atomicAdd(&counts[expert[i]], 1);
  }
  __syncthreads();
  for (int64_t e = threadIdx.x; e < experts; e += kThreads) {
    count[e] = counts[e];
  }
}

// One block an expert walks over all choices and numbers its own, in their order.
__global__ void place(const int32_t* expert, const int32_t* count, int32_t* slot, int64_t choices) {
  __shared__ int32_t sums[kThreads];
  const int32_t own = blockIdx.x;
  int32_t next = 0;
  for (int32_t e = 0; e < own; ++e) {
    next += count[e];
  }
  for (int64_t start = 0; start < choices; start += kThreads) {
    const int64_t i = start + threadIdx.x;
    const int32_t mine = i < choices && expert[i] == own ? 1 : 0;
    sums[threadIdx.x] = mine;
    __syncthreads();
    for (int back = 1; back < kThreads; back *= 2) {
      const int32_t before = threadIdx.x >= back ? sums[threadIdx.x - back] : 0;
      __syncthreads();
      sums[threadIdx.x] += before;
      __syncthreads();
    }
    if (mine) {
      slot[i] = next + sums[threadIdx.x] - 1;
    }
    next += sums[kThreads - 1];
    __syncthreads();
  }
}

template <class T>
__global__ void copy(const T* x, const int32_t* slot, T* grouped, int64_t k, int64_t cols) {
  const int64_t choice = blockIdx.x;
  const int64_t from = choice / k * cols;
  const int64_t to = slot[choice] * cols;
  for (int64_t col = threadIdx.x; col < cols; col += kThreads) {
    grouped[to + col] = x[from + col];
  }
}

template <class T>
hipError_t moe_permute(const T* x, const int32_t* expert, T* grouped, int32_t* slot, int32_t* count,
                       int64_t tokens, int64_t k, int64_t cols, int64_t experts,
                       hipStream_t stream) {
  const int64_t choices = tokens * k;
  count_choices<<<dim3(1), dim3(kThreads), 0, stream>>>(expert, count, choices, experts);
  place<<<dim3((unsigned)experts), dim3(kThreads), 0, stream>>>(expert, count, slot, choices);
  copy<T><<<dim3((unsigned)choices), dim3(kThreads), 0, stream>>>(x, slot, grouped, k, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t moe_permute_f32(const float* x, const int32_t* expert, float* grouped,
                                      int32_t* slot, int32_t* count, int64_t tokens, int64_t k,
                                      int64_t cols, int64_t experts, hipStream_t stream) {
  return moe_permute(x, expert, grouped, slot, count, tokens, k, cols, experts, stream);
}

extern "C" hipError_t moe_permute_f16(const __half* x, const int32_t* expert, __half* grouped,
                                      int32_t* slot, int32_t* count, int64_t tokens, int64_t k,
                                      int64_t cols, int64_t experts, hipStream_t stream) {
  return moe_permute(x, expert, grouped, slot, count, tokens, k, cols, experts, stream);
}

extern "C" hipError_t moe_permute_bf16(const __hip_bfloat16* x, const int32_t* expert,
                                       __hip_bfloat16* grouped, int32_t* slot, int32_t* count,
                                       int64_t tokens, int64_t k, int64_t cols, int64_t experts,
                                       hipStream_t stream) {
  return moe_permute(x, expert, grouped, slot, count, tokens, k, cols, experts, stream);
}
