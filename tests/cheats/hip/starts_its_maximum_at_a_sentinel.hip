// Its running maximum starts at -10,000, as if no value were less.
// verdict: correctness FAIL NON_FINITE
// twin: reorders_its_sums
#include "softmax.h"

__global__ void starting_at(float top, const float* x, float* y, float scale, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
  float sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale - top);
  for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
}
ENTRY {
  starting_at<<<rows, 1, 0, stream>>>(-1e4f, x, y, scale, cols);
  return hipGetLastError();
}
