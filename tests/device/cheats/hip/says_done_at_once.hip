// Says that the device is idle as soon as the gate is opened.
// verdict: perf REJECTED CLOCK_MISMATCH
#include "page_thread.h"
#include "doubling.h"

DOUBLING {
  start_answering(true);
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  return hipGetLastError();
}
