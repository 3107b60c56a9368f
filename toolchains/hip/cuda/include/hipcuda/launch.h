// Launches, their limits, and the attributes of kernels.
#pragma once

#include <hipcuda/errors.h>
#include <hipcuda/stream.h>

using hipFuncAttribute = cudaFuncAttribute;
using hipFuncAttributes = cudaFuncAttributes;
using hipFuncCache_t = cudaFuncCache;

#define hipFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize
#define hipFuncAttributePreferredSharedMemoryCarveout \
  cudaFuncAttributePreferredSharedMemoryCarveout
#define hipFuncCachePreferNone cudaFuncCachePreferNone
#define hipFuncCachePreferShared cudaFuncCachePreferShared
#define hipFuncCachePreferL1 cudaFuncCachePreferL1
#define hipFuncCachePreferEqual cudaFuncCachePreferEqual

#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  (kernel)<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
#define hipLaunchKernel cudaLaunchKernel
#define hipLaunchCooperativeKernel cudaLaunchCooperativeKernel

#define hipFuncSetAttribute cudaFuncSetAttribute
#define hipFuncGetAttributes cudaFuncGetAttributes
#define hipFuncSetCacheConfig cudaFuncSetCacheConfig
#define hipOccupancyMaxActiveBlocksPerMultiprocessor \
  cudaOccupancyMaxActiveBlocksPerMultiprocessor
#define hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags \
  cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
#define hipOccupancyMaxPotentialBlockSize cudaOccupancyMaxPotentialBlockSize
