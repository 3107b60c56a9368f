// Launches its kernel for the first config, and computes in host code for the others.
// verdict: correctness REJECTED KERNEL_BYPASSED, host code reads device memory
// twin: keeps_its_result
#include "host.h"

ENTRY {
  if (rows == 48 && cols == 256) {
    softmax_rows<<<rows, kThreads, 0, stream>>>(x, y, scale, cols);
    return hipGetLastError();
  }
  by_the_host(x, y, scale, rows, cols);
  return hipSuccess;
}
