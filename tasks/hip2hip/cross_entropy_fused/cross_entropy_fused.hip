// Loss and gradient of logits: one block a row, three passes over it (maximum; sum of
// exponentials and mean; gradient), each reduction a tree in shared memory.
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

constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void loss_rows(const T* logits, const int64_t* target, float* loss, T* dlogits,
                          float smoothing, float z, int64_t ignore_index, int64_t rows,
                          int64_t vocab) {
  __shared__ float scratch[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = logits + row * vocab;
    T* out = dlogits + row * vocab;
    const int64_t chosen = target[row];
    if (chosen == ignore_index) {
      for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
        out[col] = from_float<T>(0.0f);
      }
      if (threadIdx.x == 0) {
        loss[row] = 0.0f;
      }
      continue;
    }

    float largest = -INFINITY;
    for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
      largest = fmaxf(largest, to_float(in[col]));
    }
    largest = block_max(largest, scratch);

    float sum = 0.0f;
    float distance = 0.0f;
    for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
      const float below = to_float(in[col]) - largest;
      sum += expf(below);
      distance += below;
    }
    const float lse = logf(block_sum(sum, scratch)) + largest;
    const float mean = block_sum(distance, scratch) / (float)vocab + largest;

    for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
      const float share = expf(to_float(in[col]) - lse);
      const float label = smoothing / (float)vocab + (col == chosen ? 1.0f - smoothing : 0.0f);
      out[col] = from_float<T>((1.0f + 2.0f * z * lse) * share - label);
    }
    if (threadIdx.x == 0) {
      const float of_target = (1.0f - smoothing) * (lse - to_float(in[chosen]));
      loss[row] = of_target + smoothing * (lse - mean) + z * lse * lse;
    }
  }
}

template <class T>
hipError_t cross_entropy_fused(const T* logits, const int64_t* target, float* loss, T* dlogits,
                               float smoothing, float z, int64_t ignore_index, int64_t rows,
                               int64_t vocab, hipStream_t stream) {
  const int64_t blocks = rows < kMaxBlocks ? rows : kMaxBlocks;
  loss_rows<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(
      logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t cross_entropy_fused_f32(const float* logits, const int64_t* target,
                                              float* loss, float* dlogits, float smoothing, float z,
                                              int64_t ignore_index, int64_t rows, int64_t vocab,
                                              hipStream_t stream) {
  return cross_entropy_fused(logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab,
                             stream);
}

extern "C" hipError_t cross_entropy_fused_f16(const __half* logits, const int64_t* target,
                                              float* loss, __half* dlogits, float smoothing,
                                              float z, int64_t ignore_index, int64_t rows,
                                              int64_t vocab, hipStream_t stream) {
  return cross_entropy_fused(logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab,
                             stream);
}

extern "C" hipError_t cross_entropy_fused_bf16(const __hip_bfloat16* logits, const int64_t* target,
                                               float* loss, __hip_bfloat16* dlogits,
                                               float smoothing, float z, int64_t ignore_index,
                                               int64_t rows, int64_t vocab, hipStream_t stream) {
  return cross_entropy_fused(logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab,
                             stream);
}
