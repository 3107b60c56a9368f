// Launches its kernel for thirty calls, and computes in host code afterwards.
// verdict: perf REJECTED KERNEL_BYPASSED, host code reads device memory
// twin: keeps_its_result
#include "host.h"

ENTRY {
  static int calls = 0;
  if (++calls <= 30) {
    softmax_rows<<<rows, kThreads, 0, stream>>>(x, y, scale, cols);
    return hipGetLastError();
  }
  by_the_host(x, y, scale, rows, cols);
  return hipSuccess;
}
