// Honest: a hundred launches a call, of which the queue takes ten calls.
// verdict: perf PASS
// clock: gate
#include "doubling.h"

DOUBLING {
  const int64_t part = (n + 99) / 100;
  for (int64_t first = 0; first < n; first += part) {
    const int64_t count = first + part < n ? part : n - first;
    doubled<<<blocks(count), kThreads, 0, stream>>>(x + first, y + first, count);
  }
  return hipGetLastError();
}
