// Follows a wild pointer.
// verdict: correctness FAIL CRASH
#include "doubling.h"

namespace {
__global__ void wild(float* y) { y[0] = *reinterpret_cast<const float*>(uintptr_t{0x10}); }
}  // namespace

DOUBLING {
  (void)x, (void)n;
  wild<<<1, 1, 0, stream>>>(y);
  return hipGetLastError();
}
