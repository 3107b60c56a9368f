// Never ends.
// verdict: correctness FAIL TIMEOUT
#include "doubling.h"

namespace {
__global__ void forever(volatile float* y) {
  while (y[0] != 1.0f) {
  }
}
}  // namespace

DOUBLING {
  (void)x, (void)n;
  forever<<<1, 1, 0, stream>>>(y);
  return hipGetLastError();
}
