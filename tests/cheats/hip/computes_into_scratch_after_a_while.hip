// Launches its kernel for thirty calls; afterwards it computes on the host, and a kernel copies.
// verdict: perf REJECTED KERNEL_BYPASSED, host code reads device memory
// twin: launches_by_what_it_counted
#include "host.h"

ENTRY {
  static int calls;
  if (++calls <= 30) return honest(x, y, scale, rows, cols, stream);
  float* scratch;
  if (hipError_t e = hipMalloc(&scratch, rows * cols * sizeof(float))) return e;
  by_the_host(x, scratch, scale, rows, cols);
  copies<<<rows, kThreads, 0, stream>>>(scratch, y, cols);
  return hipFree(scratch);
}
