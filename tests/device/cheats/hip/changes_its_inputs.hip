// Leaves another input than it found.
// verdict: correctness REJECTED INPUT_MUTATED
#include "doubling.h"

namespace {
__global__ void change(const float* x) { const_cast<float*>(x)[0] += 1.0f; }
}  // namespace

DOUBLING {
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  change<<<1, 1, 0, stream>>>(x);
  return hipGetLastError();
}
