// Replaces the exponential by a polynomial that is good to three digits.
// verdict: correctness FAIL WRONG_RESULT, differs from the reference
// twin: reorders_its_sums
#include "softmax.h"

__global__ void roughly(const float* x, float* y, float scale, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
  for (int64_t c = 0; c < cols; ++c) {
    float power = 1 + (in[c] * scale - top) / 256;
    power = power > 0 ? power : 0;
    for (int i = 0; i < 8; ++i) power *= power;
    sum += out[c] = power;
  }
  for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
}
ENTRY {
  roughly<<<rows, 1, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
