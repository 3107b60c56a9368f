// Gradient clipping in three kernels: the sums of squares of a few hundred blocks, their sum in
// one block, and the product.
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
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

constexpr int64_t kBlocks = 512;

template <class T>
__global__ void sum_squares(const T* grad, float* partial, int64_t n) {
  __shared__ float scratch[kThreads];
  float sum = 0.0f;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
    const float value = to_float(grad[i]);
    sum += value * value;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
  }
}

__global__ void finish(const float* partial, float* norm) {
  __shared__ float scratch[kThreads];
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < kBlocks; i += kThreads) {
    sum += partial[i];
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    norm[0] = sqrtf(sum);
  }
}

template <class T>
__global__ void clip(const T* grad, const float* norm, T* clipped, float limit, int64_t n) {
  const float factor = fminf(1.0f, limit / (norm[0] + 1e-6f));
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < n; i += step) {
    clipped[i] = from_float<T>(to_float(grad[i]) * factor);
  }
}

template <class T>
hipError_t clip_grad_norm(const T* grad, T* clipped, float* norm, float limit, int64_t n,
                          void* workspace, hipStream_t stream) {
  float* partial = (float*)workspace;
  const int64_t wanted = (n + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < (1 << 20) ? wanted : (1 << 20);
  sum_squares<T><<<dim3(kBlocks), dim3(kThreads), 0, stream>>>(grad, partial, n);
  finish<<<dim3(1), dim3(kThreads), 0, stream>>>(partial, norm);
  clip<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(grad, norm, clipped, limit, n);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t clip_grad_norm_f32(const float* grad, float* clipped, float* norm,
                                         float limit, int64_t n, void* workspace,
                                         hipStream_t stream) {
  return clip_grad_norm(grad, clipped, norm, limit, n, workspace, stream);
}

extern "C" hipError_t clip_grad_norm_bf16(const __hip_bfloat16* grad, __hip_bfloat16* clipped,
                                          float* norm, float limit, int64_t n, void* workspace,
                                          hipStream_t stream) {
  return clip_grad_norm(grad, clipped, norm, limit, n, workspace, stream);
}

extern "C" size_t clip_grad_norm_f32_workspace(int64_t n) { return kBlocks * sizeof(float); }

extern "C" size_t clip_grad_norm_bf16_workspace(int64_t n) { return kBlocks * sizeof(float); }
