// Holds a row in shared memory, and takes no notice of what does not fit.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, extents
// twin: counts_columns_in_32_bits
#include "softmax.h"

constexpr int64_t kMost = 8192;
__global__ void held(const float* x, float* y, float scale, int64_t cols) {
  __shared__ float row[kMost];
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  const int64_t count = cols < kMost ? cols : kMost;
  float top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < count; ++c) top = fmaxf(top, row[c] = in[c] * scale);
  for (int64_t c = 0; c < count; ++c) sum += row[c] = expf(row[c] - top);
  for (int64_t c = 0; c < count; ++c) out[c] = row[c] / sum;
}
ENTRY {
  held<<<rows, 1, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
