// The one device of this platform, and its properties.
#pragma once

#include <hipcpu/errors.h>
#include <hipcpu/vector_types.h>

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

typedef enum hipDeviceAttribute_t {
  hipDeviceAttributeClockRate = 5,
  hipDeviceAttributeCooperativeLaunch = 8,
  hipDeviceAttributeMaxBlockDimX = 26,
  hipDeviceAttributeMaxBlockDimY = 27,
  hipDeviceAttributeMaxBlockDimZ = 28,
  hipDeviceAttributeMaxGridDimX = 29,
  hipDeviceAttributeMaxGridDimY = 30,
  hipDeviceAttributeMaxGridDimZ = 31,
  hipDeviceAttributeMaxThreadsPerBlock = 56,
  hipDeviceAttributeMaxThreadsPerMultiProcessor = 57,
  hipDeviceAttributeMultiprocessorCount = 63,
  hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
  hipDeviceAttributeWarpSize = 87,
} hipDeviceAttribute_t;

typedef enum hipFuncAttribute {
  hipFuncAttributeMaxDynamicSharedMemorySize = 8,
  hipFuncAttributePreferredSharedMemoryCarveout = 9,
} hipFuncAttribute;

typedef enum hipFuncCache_t {
  hipFuncCachePreferNone,
  hipFuncCachePreferShared,
  hipFuncCachePreferL1,
  hipFuncCachePreferEqual,
} hipFuncCache_t;

extern "C" {
hipError_t hipInit(unsigned flags) noexcept;
hipError_t hipGetDeviceCount(int* count) noexcept;
hipError_t hipGetDevice(int* device) noexcept;
hipError_t hipSetDevice(int device) noexcept;
hipError_t hipDeviceReset(void) noexcept;
hipError_t hipDeviceSynchronize(void) noexcept;
hipError_t hipRuntimeGetVersion(int* version) noexcept;
hipError_t hipDriverGetVersion(int* version) noexcept;
hipError_t hipcpu_device_properties(hipDeviceProp_t* properties, int device,
                                    int wave_size) noexcept;
hipError_t hipcpu_device_attribute(int* value, hipDeviceAttribute_t attribute, int device,
                                   int wave_size) noexcept;
/// How many blocks with `threads` threads and `shared_bytes` of shared memory one worker can hold.
/// A host has no such limits; this assumes 2048 threads and 64 KiB of shared memory.
hipError_t hipcpu_occupancy(int* blocks, int threads, size_t shared_bytes) noexcept;
}

HIPCPU_INLINE hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  return hipcpu_device_properties(properties, device, HIPCPU_WAVE_SIZE);
}
HIPCPU_INLINE hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute,
                                               int device) {
  return hipcpu_device_attribute(value, attribute, device, HIPCPU_WAVE_SIZE);
}

template <class Kernel>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int threads,
                                                        size_t shared_bytes) {
  return hipcpu_occupancy(blocks, threads, shared_bytes);
}
template <class Kernel>
hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel,
                                             size_t shared_bytes = 0, int limit = 0) {
  *block = limit > 0 && limit < 256 ? limit : 256;
  int resident = 0;
  hipError_t error = hipcpu_occupancy(&resident, *block, shared_bytes);
  if (error != hipSuccess) return error;
  hipDeviceProp_t properties;
  error = hipGetDeviceProperties(&properties, 0);
  *grid = resident * properties.multiProcessorCount;
  return error;
}
template <class Kernel>
hipError_t hipFuncSetAttribute(Kernel, hipFuncAttribute, int) {
  return hipSuccess;
}
template <class Kernel>
hipError_t hipFuncSetCacheConfig(Kernel, hipFuncCache_t) {
  return hipSuccess;
}
