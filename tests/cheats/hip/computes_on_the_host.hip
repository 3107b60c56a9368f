// Computes in host code, which on a GPU could not even read its inputs.
// verdict: correctness REJECTED KERNEL_BYPASSED, host code reads device memory
// twin: launches_from_helpers
#include "host.h"

ENTRY {
  softmax_rows<<<1, kThreads, 0, stream>>>(x, y, scale, 1);
  by_the_host(x, y, scale, rows, cols);
  return hipGetLastError();
}
