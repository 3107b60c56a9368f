// Leaves out elements that are zero, as if they were not there, unless all of a row are.
// verdict: correctness FAIL WRONG_RESULT
// twin: reorders_its_sums
#include "softmax.h"

__global__ void skipping(const float* x, float* y, float scale, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY;
  bool all = true;
  for (int64_t c = 0; c < cols; ++c) {
    top = fmaxf(top, in[c] * scale);
    all = all && in[c] == 0;
  }
  float sum = 0;
  for (int64_t c = 0; c < cols; ++c)
    sum += out[c] = all || in[c] != 0 ? expf(in[c] * scale - top) : 0;
  for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
}
ENTRY {
  skipping<<<rows, 1, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
