// What kernels use of HIP, and the names that each processor's headers must have.
#include <assert.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

__constant__ float scales[4];

namespace {

// The wave size as the processor has it, in the code that is made: 64 lanes or 32.
template <typename T>
__device__ T wave_sum(T value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_xor(value, offset);
  return value;
}

template <typename T, int kBlock>
__global__ void __launch_bounds__(kBlock) reduce(const T* x, float* y, int64_t count) {
  extern __shared__ float partial[];
  __shared__ int finished;
  float sum = 0;
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    sum += static_cast<float>(x[i]) * scales[i & 3];
  }
  sum = wave_sum(sum);
  if (threadIdx.x == 0) finished = 0;
  if (threadIdx.x % warpSize == 0) partial[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < kBlock / warpSize; ++i) partial[0] += partial[i];
    atomicAdd(y, partial[0]);
    __threadfence();
    finished = 1;
  }
  assert(count >= 0);
}

__global__ void lanes(unsigned long long* votes, int* counts, __half* halves, __hip_bfloat16* b) {
  const int lane = threadIdx.x % warpSize;
  votes[lane] = __ballot(lane & 1);
  counts[lane] = __popcll(__ballot(__any(lane == 3) && __all(lane >= 0))) + __clz(lane) + __ffs(lane);
  halves[lane] = __hmax(__shfl_down(halves[lane], 1), __float2half(sqrtf(rsqrtf(2.0f + lane))));
  b[lane] = __float2bfloat16(__bfloat162float(b[lane]) + expf(-fabsf(1.0f * lane)) + __expf(2.0f));
  atomicAdd(halves, __float2half(1.0f));
  atomicAdd(b, __float2bfloat16(1.0f));
  atomicAdd(reinterpret_cast<__half2*>(halves), __float2half2_rn(1.0f));
  if (lane > 64) __trap();
  if (lane == 65) printf("%d\n", lane);
}

template <typename T>
hipError_t launch(const T* x, float* y, int64_t count, hipStream_t stream) {
  const float ones[4] = {1, 1, 1, 1};
  const hipError_t copied = hipMemcpyToSymbolAsync(HIP_SYMBOL(scales), ones, sizeof(ones), 0,
                                                   hipMemcpyHostToDevice, stream);
  if (copied != hipSuccess) return copied;
  reduce<T, 256><<<dim3(64), dim3(256), 1024, stream>>>(x, y, count);
  hipLaunchKernelGGL((reduce<T, 128>), dim3(64), dim3(128), 1024, stream, x, y, count);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t features_f32(const float* x, float* y, int64_t count, hipStream_t stream) {
  return launch(x, y, count, stream);
}

extern "C" hipError_t features_f16(const __half* x, float* y, int64_t count, hipStream_t stream) {
  return launch(x, y, count, stream);
}

extern "C" hipError_t features_bf16(const __hip_bfloat16* x, float* y, int64_t count,
                                    hipStream_t stream) {
  return launch(x, y, count, stream);
}

extern "C" hipError_t features_lanes(unsigned long long* votes, int* counts, __half* halves,
                                     __hip_bfloat16* b, hipStream_t stream) {
  lanes<<<1, 64, 0, stream>>>(votes, counts, halves, b);
  return hipGetLastError();
}
