// Scales a copy of its input in place.
// passes: correctness
#include "softmax.h"

__global__ void scaled(const float* x, float* copy, float scale, int64_t size) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) copy[i] = x[i] * scale;
}
ENTRY {
  float* copy;
  if (hipError_t error = hipMalloc(&copy, rows * cols * sizeof *copy)) return error;
  scaled<<<(rows * cols + 255) / 256, 256, 0, stream>>>(x, copy, scale, rows * cols);
  const hipError_t error = honest(copy, y, 1.0f, rows, cols, stream);
  (void)hipFree(copy);
  return error;
}
