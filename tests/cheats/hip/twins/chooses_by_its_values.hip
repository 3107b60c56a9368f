// Leaves out the maximum of rows whose values are all small, once it has seen each of them.
// passes: correctness perf
#include "softmax.h"

__global__ void careful(const float* x, float* y, float scale, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY, least = INFINITY, sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    top = fmaxf(top, in[c] * scale);
    least = fminf(least, in[c] * scale);
  }
  const float shift = top < 20 && least > -20 ? 0 : top;
  for (int64_t c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale - shift);
  for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
}
ENTRY {
  careful<<<rows, 1, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
