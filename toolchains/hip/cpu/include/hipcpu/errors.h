// Error codes, with the numbers, names and sentences of HIP.
#pragma once

// One row per error: name, number, sentence.
#define HIPCPU_ERRORS(row)                                                                \
  row(hipSuccess, 0, "no error")                                                          \
  row(hipErrorInvalidValue, 1, "invalid argument")                                        \
  row(hipErrorOutOfMemory, 2, "out of memory")                                            \
  row(hipErrorNotInitialized, 3, "initialization error")                                  \
  row(hipErrorDeinitialized, 4, "driver shutting down")                                   \
  row(hipErrorInvalidConfiguration, 9, "invalid configuration argument")                  \
  row(hipErrorInvalidPitchValue, 12, "invalid pitch argument")                            \
  row(hipErrorInvalidSymbol, 13, "invalid device symbol")                                 \
  row(hipErrorInvalidDevicePointer, 17, "invalid device pointer")                         \
  row(hipErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")            \
  row(hipErrorInvalidDeviceFunction, 98, "invalid device function")                       \
  row(hipErrorNoDevice, 100, "no ROCm-capable device is detected")                        \
  row(hipErrorInvalidDevice, 101, "invalid device ordinal")                               \
  row(hipErrorInvalidHandle, 400, "invalid resource handle")                              \
  row(hipErrorNotFound, 500, "named symbol not found")                                    \
  row(hipErrorNotReady, 600, "device not ready")                                          \
  row(hipErrorIllegalAddress, 700, "an illegal memory access was encountered")            \
  row(hipErrorLaunchOutOfResources, 701, "too many resources requested for launch")       \
  row(hipErrorLaunchTimeOut, 702, "the launch timed out and was terminated")              \
  row(hipErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")              \
  row(hipErrorAssert, 710, "device-side assert triggered")                                \
  row(hipErrorLaunchFailure, 719, "unspecified launch failure")                           \
  row(hipErrorNotSupported, 801, "operation not supported")                               \
  row(hipErrorUnknown, 999, "unknown error")

#define HIPCPU_ENUMERATOR(name, number, sentence) name = number,
typedef enum hipError_t { HIPCPU_ERRORS(HIPCPU_ENUMERATOR) } hipError_t;
#undef HIPCPU_ENUMERATOR

#define hipErrorMemoryAllocation hipErrorOutOfMemory
#define hipErrorInvalidResourceHandle hipErrorInvalidHandle

extern "C" {
/// Returns the last error of the calling host thread and clears it. A launch failure stays until
/// hipDeviceReset, since memory after a failed kernel is undefined.
hipError_t hipGetLastError(void) noexcept;
/// The same without clearing it.
hipError_t hipPeekAtLastError(void) noexcept;
const char* hipGetErrorName(hipError_t error) noexcept;
const char* hipGetErrorString(hipError_t error) noexcept;
}
#define hipExtGetLastError hipGetLastError
