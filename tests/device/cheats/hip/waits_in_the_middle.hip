// Honest: waits for the device between two halves, as what depends on a result does.
// verdict: perf PASS
// clock: host
#include "doubling.h"

DOUBLING {
  const int64_t half = (n + 1) / 2;
  doubled<<<blocks(half), kThreads, 0, stream>>>(x, y, half);
  const hipError_t error = hipStreamSynchronize(stream);
  if (error != hipSuccess) return error;
  if (n > half) {
    doubled<<<blocks(n - half), kThreads, 0, stream>>>(x + half, y + half, n - half);
  }
  return hipGetLastError();
}
