// What a HIP source may say, and CUDA alone would not understand, or understand otherwise.
#include <hip/hip_bf16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <algorithm>
#include <cmath>
#include <stdint.h>

namespace {

constexpr int kLanes = warpSize;  // a constant

template <class T>
__global__ void __launch_bounds__(256) dynamic(T* out, int n) {
  extern __shared__ T values[];  // another type for each T
  values[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) out[threadIdx.x] = values[n - 1 - threadIdx.x];
}

__global__ void waves(unsigned long long* out, float* x, short* s) {
  float sum = x[threadIdx.x];
  for (int step = warpSize / 2; step > 0; step >>= 1) sum += __shfl_xor(sum, step);
  const unsigned long long votes = __ballot(sum > 0);
  if (__any(sum > 1) && !__all(sum > 2)) out[0] = __popcll(votes);
  out[1] = __shfl(votes, 3, 8) + __shfl_up(votes, 1) + __shfl_down(votes, 1, 16);
  s[0] = __shfl(s[1], 1);
  out[2] = __ballot_sync(~0ull, 1) + __match_any(s[0]) + __activemask() + __lane_id();
  out[3] = __reduce_max_sync(~0ull, x[0]) + __reduce_add_sync(~0ull, 1);
  x[0] = __shfl_xor_sync(~0ull, sum, 1) + __builtin_amdgcn_readfirstlane(sum);
}

__global__ void numbers(float4* v, __half* h, __hip_bfloat16* b, double* d) {
  v[0] = v[1] * 2.0f + v[2] - make_float4(1, 2, 3, 4);
  v[0] += v[1];
  if (v[0] == v[1]) v[2] = -v[3];
  h[0] = h[1] * 2 + h[2];
  const float wide = h[0] * 0.5f + b[0] * 2.0f;
  b[1] = __float2bfloat16(wide);
  b[2] = b[0] * b[1];
  d[0] = 0.5 * h[1] + std::max(d[1], d[2]) + rsqrt(d[3]);
  atomicMax(&v[0].x, wide);
  atomicAdd(h, __float2half(1.0f));
  unsafeAtomicAdd(d, 1.0);
  __hip_atomic_fetch_add(reinterpret_cast<int*>(d + 4), 1, __ATOMIC_RELAXED,
                         __HIP_MEMORY_SCOPE_AGENT);
}

__global__ void groups(int* out) {
  namespace cg = cooperative_groups;
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  out[threadIdx.x] = tile.shfl_down(out[threadIdx.x], 1) + kLanes;
  block.sync();
}

}  // namespace

extern "C" hipError_t everything(float* x, int64_t n, void* scratch, hipStream_t stream) {
  hipDeviceProp_t properties;
  hipError_t error = hipGetDeviceProperties(&properties, 0);
  if (error != hipSuccess) return error;
  const dim3 grid(static_cast<unsigned>(n), 1, properties.warpSize);
  dynamic<<<grid, 256, 256 * sizeof(float), stream>>>(x, 256);
  hipLaunchKernelGGL(HIP_KERNEL_NAME(dynamic<int>), grid, dim3(256), 1024, stream,
                     static_cast<int*>(scratch), 256);
  waves<<<1, 64, 0, stream>>>(static_cast<unsigned long long*>(scratch), x, nullptr);
  numbers<<<1, 1, 0, stream>>>(nullptr, nullptr, nullptr, nullptr);
  groups<<<1, 64>>>(static_cast<int*>(scratch));
  error = hipMemsetD32Async(scratch, 1, 16, stream);
  if (error == hipErrorInvalidValue) return hipErrorNotSupported;
  void* pinned = nullptr;
  error = hipHostGetDevicePointer(&pinned, scratch, 0);
  if (error == hipSuccess) error = hipMemcpyDtoDAsync(scratch, pinned, 16, stream);
  if (error == hipSuccess) error = hipMemcpyHtoDAsync(scratch, pinned, 16, stream);
  if (error == hipSuccess) error = hipMemcpyDtoHAsync(pinned, scratch, 16, stream);
  if (error == hipSuccess) {
    error = hipMemcpy2DAsync(pinned, 8, scratch, 16, 8, 1, hipMemcpyDeviceToHost, stream);
  }
  if (error != hipSuccess) return error;
  int blocks = 0;
  error = hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, groups, 64, 0);
  return hipGetErrorName(error)[0] == 'h' ? hipGetLastError() : hipErrorUnknown;
}
