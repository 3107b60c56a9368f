// One element too many.
// verdict: correctness REJECTED OUT_OF_BOUNDS
#include "doubling.h"

namespace {
__global__ void behind(float* y, int64_t n) { y[n + 3] = 1.0f; }
}  // namespace

DOUBLING {
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  behind<<<1, 1, 0, stream>>>(y, n);
  return hipGetLastError();
}
