// Has 16 bits for the number of columns, which is enough for every size that is cheap to try.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, extents
// twin: counts_columns_in_32_bits
#include "softmax.h"

__global__ void narrow(const float* x, float* y, float scale, int64_t stride, uint16_t cols) {
  const float* in = x + blockIdx.x * stride;
  float* out = y + blockIdx.x * stride;
  float top = -INFINITY, sum = 0;
  for (int c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
  for (int c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale - top);
  for (int c = 0; c < cols; ++c) out[c] /= sum;
}
ENTRY {
  narrow<<<rows, 1, 0, stream>>>(x, y, scale, cols, uint16_t(cols));
  return hipGetLastError();
}
