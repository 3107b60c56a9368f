// Does what is asked for.
// verdict: perf PASS
#include "doubling.h"

DOUBLING {
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  return hipGetLastError();
}
