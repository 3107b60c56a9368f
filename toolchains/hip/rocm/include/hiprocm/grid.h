// A thread's place and the sizes of grid and block; how kernels are declared and launched.
#pragma once

#include <hip/hip_runtime_api.h>

#define HIPROCM_COORDINATE(axis, builtin)                              \
  __declspec(property(get = get_##axis)) unsigned axis;                \
  static __device__ __forceinline__ unsigned get_##axis() { return builtin; }

// Objects without storage: reading a member reads a register of the processor.
#define HIPROCM_GRID(name, at_x, at_y, at_z)                              \
  struct name##_t {                                                       \
    HIPROCM_COORDINATE(x, at_x)                                           \
    HIPROCM_COORDINATE(y, at_y)                                           \
    HIPROCM_COORDINATE(z, at_z)                                           \
    __device__ operator dim3() const { return dim3(at_x, at_y, at_z); }   \
  }

namespace hiprocm {

__device__ __forceinline__ unsigned blocks(unsigned threads, unsigned size) {
  return (threads + size - 1) / size;
}

HIPROCM_GRID(thread_index, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
             __builtin_amdgcn_workitem_id_z());
HIPROCM_GRID(block_index, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
             __builtin_amdgcn_workgroup_id_z());
HIPROCM_GRID(block_size, __builtin_amdgcn_workgroup_size_x(),
             __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z());
HIPROCM_GRID(grid_size,
             blocks(__builtin_amdgcn_grid_size_x(), __builtin_amdgcn_workgroup_size_x()),
             blocks(__builtin_amdgcn_grid_size_y(), __builtin_amdgcn_workgroup_size_y()),
             blocks(__builtin_amdgcn_grid_size_z(), __builtin_amdgcn_workgroup_size_z()));

}  // namespace hiprocm

#undef HIPROCM_COORDINATE
#undef HIPROCM_GRID

extern const __device__ __attribute__((weak)) hiprocm::thread_index_t threadIdx;
extern const __device__ __attribute__((weak)) hiprocm::block_index_t blockIdx;
extern const __device__ __attribute__((weak)) hiprocm::block_size_t blockDim;
extern const __device__ __attribute__((weak)) hiprocm::grid_size_t gridDim;

// Ends the wave, and the launch with an error.
__device__ inline void __trap() { __builtin_trap(); }

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

#ifndef __align__
#define __align__(bytes) __attribute__((aligned(bytes)))
#endif

// The second argument of __launch_bounds__ is a minimum of waves per SIMD unit on AMD's processors.
#define HIPROCM_BOUND_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define HIPROCM_BOUND_2(threads, waves)                           \
  __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define HIPROCM_SELECT(first, second, chosen, ...) chosen
#define __launch_bounds__(...) \
  HIPROCM_SELECT(__VA_ARGS__, HIPROCM_BOUND_2, HIPROCM_BOUND_1, )(__VA_ARGS__)

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(symbol) symbol
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIPROCM_LAUNCH(kernel, blocks, threads, shared, stream, ...)           \
  do {                                                                         \
    kernel<<<(blocks), (threads), (shared), (stream)>>>(__VA_ARGS__);          \
  } while (0)
#define hipLaunchKernelGGL(kernel, ...) HIPROCM_LAUNCH((kernel), __VA_ARGS__)
