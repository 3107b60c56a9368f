// The version of HIP and its platform. The compiler has included cuda_runtime.h before the source.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define __HIP__ 1
#define __HIPCC__ 1
#define __HIP_PLATFORM_NVIDIA__ 1
#define __HIP_PLATFORM_NVCC__ 1
#ifdef __CUDA_ARCH__
#define __HIP_DEVICE_COMPILE__ 1
#endif

#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 1
#define HIP_VERSION_PATCH 0
#define HIP_VERSION (HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000 + HIP_VERSION_PATCH)

#define HIPCUDA_DEVICE static __device__ __forceinline__
#define HIPCUDA_HOST static inline
#define HIPCUDA_ANYWHERE static __host__ __device__ __forceinline__

namespace hipcuda {
/// `warpSize` in a source: this can be the size of an array, CUDA's variable cannot.
constexpr int kWaveSize = 32;
}  // namespace hipcuda

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(variable) variable
#define HIP_DYNAMIC_SHARED_ATTRIBUTE
