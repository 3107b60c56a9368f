// Sums a row with atomic additions of whole numbers, whose order does not matter.
// passes: correctness
#include "softmax.h"

__global__ void count_rows(const float* x, float* y, float scale, int64_t cols) {
  __shared__ unsigned long long sum;
  const float* in = x + blockIdx.x * cols;
  float top = -INFINITY;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    atomicAdd(&sum, static_cast<unsigned long long>(double(expf(in[c] * scale - top)) * 1e12));
  }
  __syncthreads();
  const float total = float(double(sum) * 1e-12);
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    y[blockIdx.x * cols + c] = expf(in[c] * scale - top) / total;
  }
}
ENTRY {
  count_rows<<<rows, kThreads, 0, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
