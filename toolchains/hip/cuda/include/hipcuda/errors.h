// Error codes: HIP gives its errors the numbers of CUDA's, so that only the names differ.
#pragma once

#include <hipcuda/platform.h>

using hipError_t = cudaError_t;

// One row per error: HIP's name without its first word, and CUDA's.
#define HIPCUDA_ERRORS(row)                                 \
  row(InvalidValue, InvalidValue)                           \
  row(OutOfMemory, MemoryAllocation)                        \
  row(NotInitialized, InitializationError)                  \
  row(Deinitialized, CudartUnloading)                       \
  row(InvalidConfiguration, InvalidConfiguration)           \
  row(InvalidPitchValue, InvalidPitchValue)                 \
  row(InvalidSymbol, InvalidSymbol)                         \
  row(InvalidDevicePointer, InvalidDevicePointer)           \
  row(InvalidMemcpyDirection, InvalidMemcpyDirection)       \
  row(InsufficientDriver, InsufficientDriver)               \
  row(InvalidDeviceFunction, InvalidDeviceFunction)         \
  row(NoDevice, NoDevice)                                   \
  row(InvalidDevice, InvalidDevice)                         \
  row(InvalidImage, InvalidKernelImage)                     \
  row(InvalidContext, DeviceUninitialized)                  \
  row(NoBinaryForGpu, NoKernelImageForDevice)               \
  row(ECCNotCorrectable, ECCUncorrectable)                  \
  row(InvalidHandle, InvalidResourceHandle)                 \
  row(NotFound, SymbolNotFound)                             \
  row(NotReady, NotReady)                                   \
  row(IllegalAddress, IllegalAddress)                       \
  row(LaunchOutOfResources, LaunchOutOfResources)           \
  row(LaunchTimeOut, LaunchTimeout)                         \
  row(PeerAccessNotEnabled, PeerAccessNotEnabled)           \
  row(Assert, Assert)                                       \
  row(HostMemoryAlreadyRegistered, HostMemoryAlreadyRegistered) \
  row(LaunchFailure, LaunchFailure)                         \
  row(CooperativeLaunchTooLarge, CooperativeLaunchTooLarge) \
  row(NotSupported, NotSupported)                           \
  row(StreamCaptureUnsupported, StreamCaptureUnsupported)   \
  row(StreamCaptureInvalidated, StreamCaptureInvalidated)   \
  row(Unknown, Unknown)

constexpr hipError_t hipSuccess = cudaSuccess;
#define HIPCUDA_CONSTANT(name, its) constexpr hipError_t hipError##name = cudaError##its;
HIPCUDA_ERRORS(HIPCUDA_CONSTANT)
#undef HIPCUDA_CONSTANT
#define hipErrorMemoryAllocation hipErrorOutOfMemory
#define hipErrorInvalidResourceHandle hipErrorInvalidHandle

#define hipGetLastError cudaGetLastError
#define hipExtGetLastError cudaGetLastError
#define hipPeekAtLastError cudaPeekAtLastError
#define hipGetErrorString cudaGetErrorString

/// HIP's name of an error; CUDA's where HIP has none.
HIPCUDA_HOST const char* hipGetErrorName(hipError_t error) {
  switch (error) {
    case cudaSuccess:
      return "hipSuccess";
#define HIPCUDA_NAME(name, its) \
  case cudaError##its:          \
    return "hipError" #name;
    HIPCUDA_ERRORS(HIPCUDA_NAME)
#undef HIPCUDA_NAME
    default:
      return cudaGetErrorName(error);
  }
}
