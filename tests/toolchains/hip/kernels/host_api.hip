// The host side: memory, streams, events, properties, errors. Each function returns the number of
// the line whose expectation failed, or 0.
#include <hip/hip_runtime.h>

#define EXPECT(condition)          \
  do {                             \
    if (!(condition)) return __LINE__; \
  } while (false)

__global__ void double_all(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= 2;
}

extern "C" {

int check_memory() {
  constexpr int kCount = 1000;
  int host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = i;
  int* device = nullptr;
  EXPECT(hipMalloc(&device, sizeof host) == hipSuccess);
  EXPECT(reinterpret_cast<uintptr_t>(device) % 256 == 0);
  EXPECT(hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice) == hipSuccess);
  double_all<<<4, 256>>>(device, kCount);
  EXPECT(hipDeviceSynchronize() == hipSuccess);
  EXPECT(hipMemcpyAsync(host, device, sizeof host, hipMemcpyDeviceToHost, nullptr) == hipSuccess);
  for (int i = 0; i < kCount; ++i) EXPECT(host[i] == 2 * i);
  EXPECT(hipMemset(device, 0xff, sizeof host) == hipSuccess);
  EXPECT(device[kCount - 1] == -1);
  EXPECT(hipMemsetD32(device, 7, 3) == hipSuccess);
  EXPECT(device[2] == 7 && device[3] == -1);
  EXPECT(hipMemcpy2D(host, 4 * sizeof(int), device, 2 * sizeof(int), 2 * sizeof(int), 2,
                     hipMemcpyDefault) == hipSuccess);
  EXPECT(host[0] == 7 && host[1] == 7 && host[4] == 7 && host[5] == -1);
  host[2] = host[4] = 0;
  EXPECT(hipMemcpy2DAsync(host, 4 * sizeof(int), device, 2 * sizeof(int), 2 * sizeof(int), 2,
                          hipMemcpyDeviceToHost, nullptr) == hipSuccess);
  EXPECT(host[1] == 7 && host[2] == 0 && host[4] == 7);
  host[0] = 5;
  EXPECT(hipMemcpyHtoDAsync(device, host, sizeof(int), nullptr) == hipSuccess);
  EXPECT(hipMemcpyDtoDAsync(device + 1, device, sizeof(int), nullptr) == hipSuccess);
  EXPECT(hipMemcpyDtoHAsync(host + 9, device + 1, sizeof(int), nullptr) == hipSuccess);
  EXPECT(host[9] == 5);
  int* pinned = nullptr;
  void* seen = nullptr;
  EXPECT(hipHostMalloc(&pinned, sizeof host, hipHostMallocMapped) == hipSuccess);
  EXPECT(hipHostGetDevicePointer(&seen, pinned + 1, 0) == hipSuccess);
  EXPECT(seen == pinned + 1);
  EXPECT(hipHostGetDevicePointer(&seen, host, 0) == hipErrorInvalidValue);
  EXPECT(hipHostGetDevicePointer(&seen, device, 0) == hipErrorInvalidValue);
  EXPECT(hipGetLastError() == hipErrorInvalidValue);
  EXPECT(hipHostFree(pinned) == hipSuccess);
  EXPECT(hipFree(device) == hipSuccess);
  EXPECT(hipFree(nullptr) == hipSuccess);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  EXPECT(hipMemGetInfo(&free_bytes, &total_bytes) == hipSuccess);
  EXPECT(free_bytes > 0 && free_bytes <= total_bytes);
  return 0;
}

int check_errors() {
  int* device = nullptr;
  alignas(256) static int not_ours[512];
  EXPECT(hipGetLastError() == hipSuccess);
  EXPECT(hipFree(not_ours + 256) == hipErrorInvalidValue);
  EXPECT(hipPeekAtLastError() == hipErrorInvalidValue);
  EXPECT(hipGetLastError() == hipErrorInvalidValue);
  EXPECT(hipGetLastError() == hipSuccess);
  EXPECT(hipMemcpy(not_ours, not_ours, 4, static_cast<hipMemcpyKind>(9)) ==
         hipErrorInvalidMemcpyDirection);
  EXPECT(hipMemcpy(nullptr, not_ours, 4, hipMemcpyDefault) == hipErrorInvalidValue);
  EXPECT(hipMalloc(&device, ~static_cast<size_t>(0) / 4) == hipErrorOutOfMemory);
  EXPECT(device == nullptr);
  EXPECT(hipSetDevice(1) == hipErrorInvalidDevice);
  EXPECT(hipStreamDestroy(nullptr) == hipErrorInvalidHandle);
  EXPECT(hipGetLastError() == hipErrorInvalidHandle);
  return 0;
}

int check_streams() {
  hipStream_t stream = nullptr;
  hipEvent_t start = nullptr;
  hipEvent_t stop = nullptr;
  EXPECT(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
  EXPECT(stream != nullptr);
  EXPECT(hipEventCreate(&start) == hipSuccess);
  EXPECT(hipEventCreate(&stop) == hipSuccess);
  float milliseconds = -1.0f;
  EXPECT(hipEventElapsedTime(&milliseconds, start, stop) == hipErrorInvalidHandle);
  int* data = nullptr;
  EXPECT(hipMallocAsync(&data, 1 << 20, stream) == hipSuccess);
  const long long before = wall_clock64();
  EXPECT(hipEventRecord(start, stream) == hipSuccess);
  double_all<<<1024, 256, 0, stream>>>(data, 1 << 18);
  EXPECT(hipEventRecord(stop, stream) == hipSuccess);
  const long long after = wall_clock64();
  EXPECT(hipStreamWaitEvent(stream, stop, 0) == hipSuccess);
  EXPECT(hipEventSynchronize(stop) == hipSuccess);
  EXPECT(hipEventElapsedTime(&milliseconds, start, stop) == hipSuccess);
  EXPECT(milliseconds > 0.0f && milliseconds <= (after - before) * 1e-6f);
  EXPECT(hipStreamSynchronize(stream) == hipSuccess);
  EXPECT(hipFreeAsync(data, stream) == hipSuccess);
  EXPECT(hipEventDestroy(start) == hipSuccess);
  EXPECT(hipEventDestroy(stop) == hipSuccess);
  EXPECT(hipStreamDestroy(stream) == hipSuccess);
  hipGetLastError();
  return 0;
}

int check_device() {
  int count = 0;
  EXPECT(hipGetDeviceCount(&count) == hipSuccess && count == 1);
  hipDeviceProp_t properties;
  EXPECT(hipGetDeviceProperties(&properties, 0) == hipSuccess);
  EXPECT(properties.warpSize == warpSize);
  EXPECT(properties.maxThreadsPerBlock == 1024);
  EXPECT(properties.multiProcessorCount >= 1);
  EXPECT(properties.name[0] != '\0');
  int value = 0;
  EXPECT(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0) == hipSuccess);
  EXPECT(value == warpSize);
  int blocks = 0;
  EXPECT(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, double_all, 256, 0) == hipSuccess);
  EXPECT(blocks == 8);
  EXPECT(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, double_all, 64, 32 << 10) ==
         hipSuccess);
  EXPECT(blocks == 2);
  int grid = 0;
  int block = 0;
  EXPECT(hipOccupancyMaxPotentialBlockSize(&grid, &block, double_all) == hipSuccess);
  EXPECT(grid >= 1 && block == 256);
  return 0;
}

}
