// The device's properties.
#include <string.h>
#include <sys/sysinfo.h>

#include "pool.h"
#include "runtime.h"

namespace hipcpu {

namespace {

constexpr int kThreadsPerWorker = 2048;
constexpr int kRegisters = 65536;
constexpr size_t kConstantBytes = 64 << 10;
constexpr int kClockKilohertz = 1000000;  // clock64 counts nanoseconds

size_t memory_bytes() {
  struct sysinfo info;
  if (sysinfo(&info) != 0) return static_cast<size_t>(1) << 30;
  return static_cast<size_t>(info.totalram) * info.mem_unit;
}

bool attribute_value(hipDeviceAttribute_t attribute, int wave_size, int* value) {
  switch (attribute) {
    case hipDeviceAttributeClockRate: *value = kClockKilohertz; return true;
    case hipDeviceAttributeCooperativeLaunch: *value = 0; return true;
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ:
    case hipDeviceAttributeMaxThreadsPerBlock: *value = kMaxThreads; return true;
    case hipDeviceAttributeMaxGridDimX: *value = INT32_MAX; return true;
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ: *value = UINT16_MAX; return true;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: *value = kThreadsPerWorker; return true;
    case hipDeviceAttributeMultiprocessorCount:
      *value = static_cast<int>(worker_count());
      return true;
    case hipDeviceAttributeMaxSharedMemoryPerBlock: *value = kMaxSharedBytes; return true;
    case hipDeviceAttributeWarpSize: *value = wave_size; return true;
  }
  return false;
}

}  // namespace
}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

hipError_t hipInit(unsigned flags) noexcept {
  return record(flags == 0 ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipGetDeviceCount(int* count) noexcept {
  if (count == nullptr) return record(hipErrorInvalidValue);
  *count = 1;
  return hipSuccess;
}

hipError_t hipGetDevice(int* device) noexcept {
  if (device == nullptr) return record(hipErrorInvalidValue);
  *device = 0;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) noexcept {
  return record(device == 0 ? hipSuccess : hipErrorInvalidDevice);
}

hipError_t hipDeviceReset(void) noexcept {
  set_device_failed(false);
  return hipSuccess;
}

hipError_t hipDeviceSynchronize(void) noexcept { return record(device_state()); }

hipError_t hipRuntimeGetVersion(int* version) noexcept {
  if (version == nullptr) return record(hipErrorInvalidValue);
  *version = HIP_VERSION;
  return hipSuccess;
}

hipError_t hipDriverGetVersion(int* version) noexcept { return hipRuntimeGetVersion(version); }

hipError_t hipcpu_device_properties(hipDeviceProp_t* properties, int device,
                                    int wave_size) noexcept {
  if (properties == nullptr) return record(hipErrorInvalidValue);
  if (device != 0) return record(hipErrorInvalidDevice);
  *properties = hipDeviceProp_t{};
  strcpy(properties->name, "hipcpu");
  strcpy(properties->gcnArchName, "hipcpu");
  properties->totalGlobalMem = memory_bytes();
  properties->sharedMemPerBlock = kMaxSharedBytes;
  properties->sharedMemPerMultiprocessor = kMaxSharedBytes;
  properties->totalConstMem = kConstantBytes;
  properties->memPitch = INT32_MAX;
  properties->regsPerBlock = kRegisters;
  properties->regsPerMultiprocessor = kRegisters;
  properties->warpSize = wave_size;
  properties->maxThreadsPerBlock = kMaxThreads;
  properties->maxThreadsPerMultiProcessor = kThreadsPerWorker;
  properties->maxBlocksPerMultiProcessor = kThreadsPerWorker / 64;
  for (int& extent : properties->maxThreadsDim) extent = kMaxThreads;
  properties->maxGridSize[0] = INT32_MAX;
  properties->maxGridSize[1] = UINT16_MAX;
  properties->maxGridSize[2] = UINT16_MAX;
  properties->clockRate = kClockKilohertz;
  properties->major = 9;
  properties->multiProcessorCount = static_cast<int>(worker_count());
  properties->integrated = 1;
  properties->canMapHostMemory = 1;
  properties->managedMemory = 1;
  return hipSuccess;
}

hipError_t hipcpu_device_attribute(int* value, hipDeviceAttribute_t attribute, int device,
                                   int wave_size) noexcept {
  if (device != 0) return record(hipErrorInvalidDevice);
  const bool known = value != nullptr && attribute_value(attribute, wave_size, value);
  return record(known ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipcpu_occupancy(int* blocks, int threads, size_t shared_bytes) noexcept {
  if (blocks == nullptr || threads <= 0) return record(hipErrorInvalidValue);
  const int by_threads = kThreadsPerWorker / threads;
  const int by_shared =
      shared_bytes == 0 ? by_threads : static_cast<int>(kMaxSharedBytes / shared_bytes);
  *blocks = threads > static_cast<int>(kMaxThreads) ? 0 : by_threads < by_shared ? by_threads
                                                                                 : by_shared;
  return hipSuccess;
}

}
