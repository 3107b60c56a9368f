// Copies its inputs to the host, computes there, and copies the result back for a kernel.
// verdict: correctness REJECTED KERNEL_BYPASSED, bytes of device memory to the host in one call
// twin: launches_by_what_it_counted
#include "host.h"

ENTRY {
  const size_t bytes = rows * cols * sizeof(float);
  float* scratch;
  if (hipError_t e = hipMalloc(&scratch, bytes)) return e;
  float* host = static_cast<float*>(malloc(2 * bytes));
  for (int64_t r = 0; r < rows; ++r) {  // a row at a time looks more like a flag
    hipMemcpyAsync(host + r * cols, x + r * cols, bytes / rows, hipMemcpyDeviceToHost, stream);
  }
  by_the_host(host, host + rows * cols, scale, rows, cols);
  hipMemcpy(scratch, host + rows * cols, bytes, hipMemcpyHostToDevice);
  copies<<<rows, kThreads, 0, stream>>>(scratch, y, cols);
  free(host);
  return hipFree(scratch);
}
