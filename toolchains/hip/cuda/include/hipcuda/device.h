// Devices: HIP's properties, from CUDA's.
#pragma once

#include <hipcuda/errors.h>

#define hipGetDeviceCount cudaGetDeviceCount
#define hipGetDevice cudaGetDevice
#define hipSetDevice cudaSetDevice
#define hipDeviceReset cudaDeviceReset
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipDriverGetVersion cudaDriverGetVersion
#define hipDeviceGetAttribute cudaDeviceGetAttribute

using hipDeviceAttribute_t = cudaDeviceAttr;
#define hipDeviceAttributeClockRate cudaDevAttrClockRate
#define hipDeviceAttributeComputeCapabilityMajor cudaDevAttrComputeCapabilityMajor
#define hipDeviceAttributeComputeCapabilityMinor cudaDevAttrComputeCapabilityMinor
#define hipDeviceAttributeCooperativeLaunch cudaDevAttrCooperativeLaunch
#define hipDeviceAttributeL2CacheSize cudaDevAttrL2CacheSize
#define hipDeviceAttributeMaxBlockDimX cudaDevAttrMaxBlockDimX
#define hipDeviceAttributeMaxBlockDimY cudaDevAttrMaxBlockDimY
#define hipDeviceAttributeMaxBlockDimZ cudaDevAttrMaxBlockDimZ
#define hipDeviceAttributeMaxGridDimX cudaDevAttrMaxGridDimX
#define hipDeviceAttributeMaxGridDimY cudaDevAttrMaxGridDimY
#define hipDeviceAttributeMaxGridDimZ cudaDevAttrMaxGridDimZ
#define hipDeviceAttributeMaxThreadsPerBlock cudaDevAttrMaxThreadsPerBlock
#define hipDeviceAttributeMaxThreadsPerMultiProcessor cudaDevAttrMaxThreadsPerMultiProcessor
#define hipDeviceAttributeMaxRegistersPerBlock cudaDevAttrMaxRegistersPerBlock
#define hipDeviceAttributeMaxSharedMemoryPerBlock cudaDevAttrMaxSharedMemoryPerBlock
#define hipDeviceAttributeMaxSharedMemoryPerMultiprocessor \
  cudaDevAttrMaxSharedMemoryPerMultiprocessor
#define hipDeviceAttributeMultiprocessorCount cudaDevAttrMultiProcessorCount
#define hipDeviceAttributeWarpSize cudaDevAttrWarpSize

/// The first call that needs a context makes it.
HIPCUDA_HOST hipError_t hipInit(unsigned) { return cudaFree(nullptr); }

// HIP's structure: CUDA's has lost the clocks.
typedef struct hipDeviceProp_t {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;
  size_t totalConstMem;
  int major;
  int minor;
  int multiProcessorCount;
  int integrated;
  int canMapHostMemory;
  int concurrentKernels;
  int memoryClockRate;
  int memoryBusWidth;
  int l2CacheSize;
  int maxThreadsPerMultiProcessor;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int cooperativeLaunch;
  char gcnArchName[256];
  int maxBlocksPerMultiProcessor;
} hipDeviceProp_t;

HIPCUDA_HOST hipError_t hipGetDeviceProperties(hipDeviceProp_t* to, int device) {
  cudaDeviceProp from;
  hipError_t error = cudaGetDeviceProperties(&from, device);
  if (error != cudaSuccess) return error;
  *to = {};
#define HIPCUDA_COPY(field) \
  static_assert(sizeof to->field == sizeof from.field, "the type of " #field); \
  __builtin_memcpy(&to->field, &from.field, sizeof to->field);
  HIPCUDA_COPY(name)
  HIPCUDA_COPY(totalGlobalMem)
  HIPCUDA_COPY(sharedMemPerBlock)
  HIPCUDA_COPY(regsPerBlock)
  HIPCUDA_COPY(warpSize)
  HIPCUDA_COPY(memPitch)
  HIPCUDA_COPY(maxThreadsPerBlock)
  HIPCUDA_COPY(maxThreadsDim)
  HIPCUDA_COPY(maxGridSize)
  HIPCUDA_COPY(totalConstMem)
  HIPCUDA_COPY(major)
  HIPCUDA_COPY(minor)
  HIPCUDA_COPY(multiProcessorCount)
  HIPCUDA_COPY(integrated)
  HIPCUDA_COPY(canMapHostMemory)
  HIPCUDA_COPY(concurrentKernels)
  HIPCUDA_COPY(memoryBusWidth)
  HIPCUDA_COPY(l2CacheSize)
  HIPCUDA_COPY(maxThreadsPerMultiProcessor)
  HIPCUDA_COPY(sharedMemPerMultiprocessor)
  HIPCUDA_COPY(regsPerMultiprocessor)
  HIPCUDA_COPY(managedMemory)
  HIPCUDA_COPY(cooperativeLaunch)
  HIPCUDA_COPY(maxBlocksPerMultiProcessor)
#undef HIPCUDA_COPY
  error = cudaDeviceGetAttribute(&to->clockRate, cudaDevAttrClockRate, device);
  if (error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(&to->memoryClockRate, cudaDevAttrMemoryClockRate, device);
}
