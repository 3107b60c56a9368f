// Keeps a row in shared memory whose size the launch says; long rows go another way.
// passes: correctness perf unseen
#include "softmax.h"

__global__ void kept(const float* x, float* y, float scale, int64_t cols) {
  extern __shared__ float row[];
  __shared__ float top, sum;
  const float* in = x + blockIdx.x * cols;
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) row[c] = in[c] * scale;
  __syncthreads();
  if (threadIdx.x == 0) {
    top = -INFINITY;
    for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, row[c]);
  }
  __syncthreads();
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) row[c] = expf(row[c] - top);
  __syncthreads();
  if (threadIdx.x == 0) {
    sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += row[c];
  }
  __syncthreads();
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) y[blockIdx.x * cols + c] = row[c] / sum;
}

ENTRY {
  int most = 0;
  (void)hipDeviceGetAttribute(&most, hipDeviceAttributeMaxSharedMemoryPerBlock, 0);
  const size_t bytes = cols * sizeof(float);
  if (bytes + 64 > (size_t)most) return honest(x, y, scale, rows, cols, stream);
  kept<<<rows, kThreads, bytes, stream>>>(x, y, scale, cols);
  return hipGetLastError();
}
