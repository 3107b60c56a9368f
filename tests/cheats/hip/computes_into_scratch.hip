// Computes on the host, into memory of its own that a kernel copies to the output.
// verdict: correctness REJECTED KERNEL_BYPASSED, host code reads device memory
// twin: launches_by_what_it_counted
#include "host.h"

ENTRY {
  float* scratch;
  if (hipError_t e = hipMalloc(&scratch, rows * cols * sizeof(float))) return e;
  by_the_host(x, scratch, scale, rows, cols);
  copies<<<rows, kThreads, 0, stream>>>(scratch, y, cols);
  if (hipError_t e = hipGetLastError()) return e;
  return hipFree(scratch);
}
