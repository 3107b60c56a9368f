// Adds in another order and with other roundings than the baseline.
// passes: correctness
#include "softmax.h"

__global__ void backwards(const float* x, float* y, float scale, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
  for (int64_t c = cols - 1; c >= 0; --c) sum += exp2f((in[c] * scale - top) * 1.44269504f);
  const float factor = 1 / sum;
  for (int64_t c = 0; c < cols; ++c) out[c] = exp2f((in[c] * scale - top) * 1.44269504f) * factor;
}
ENTRY {
  backwards<<<rows, 1, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
