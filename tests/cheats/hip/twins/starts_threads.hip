// Launches a grid that the runtime spreads over its threads.
// passes: correctness perf
#include "softmax.h"

__global__ void one_row_a_thread(const float* x, float* y, float scale, int64_t rows, int64_t cols) {
  const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, x[row * cols + c] * scale);
  for (int64_t c = 0; c < cols; ++c) sum += expf(x[row * cols + c] * scale - top);
  for (int64_t c = 0; c < cols; ++c) y[row * cols + c] = expf(x[row * cols + c] * scale - top) / sum;
}
ENTRY {
  one_row_a_thread<<<(rows + 7) / 8 + 300, 8, 0, stream>>>(x, y, scale, rows, cols);
  return hipGetLastError();
}
