// Counts the columns of a row with an int, which holds all that are declared.
// passes: correctness perf
#include "softmax.h"

__global__ void counted(const float* x, float* y, float scale, int cols) {
  const float* in = x + int64_t(blockIdx.x) * cols;
  float* out = y + int64_t(blockIdx.x) * cols;
  float top = -INFINITY, sum = 0;
  for (int c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
  for (int c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale - top);
  for (int c = 0; c < cols; ++c) out[c] /= sum;
}
ENTRY {
  counted<<<rows, 1, 0, stream>>>(x, y, scale, int(cols));
  return hipGetLastError();
}
