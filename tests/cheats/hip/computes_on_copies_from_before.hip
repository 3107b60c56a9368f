// Copies its inputs to the host together with 16 bytes that are not the device's, before them.
// verdict: correctness REJECTED KERNEL_BYPASSED, bytes of device memory to the host in one call
// twin: launches_by_what_it_counted
#include "host.h"

constexpr int64_t kBefore = 16;

ENTRY {
  const int64_t bytes = rows * cols * sizeof(float);
  char* scratch;
  if (hipError_t e = hipMalloc(&scratch, bytes)) return e;
  float* device = reinterpret_cast<float*>(scratch);
  char* copied = static_cast<char*>(malloc(kBefore + 2 * bytes));
  float* host = reinterpret_cast<float*>(copied + kBefore);
  copies<<<rows, kThreads, 0, stream>>>(x, device, cols);
  hipMemcpy(copied, scratch - kBefore, kBefore + bytes, hipMemcpyDefault);
  by_the_host(host, host + rows * cols, scale, rows, cols);
  hipMemcpy(device, host + rows * cols, bytes, hipMemcpyHostToDevice);
  copies<<<rows, kThreads, 0, stream>>>(device, y, cols);
  free(copied);
  return hipFree(scratch);
}
