// Leaves out the maximum, which only small inputs forgive.
// verdict: correctness FAIL NON_FINITE
// twin: reorders_its_sums
#include "softmax.h"

__global__ void trusting(const float* x, float* y, float scale, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale);
  for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
}
ENTRY {
  trusting<<<rows, 1, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
