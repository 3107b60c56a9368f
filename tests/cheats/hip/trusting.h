// Softmax without the maximum, which only small values forgive.
#pragma once
#include "softmax.h"

__global__ void trusting(const float* x, float* y, float scale, float top, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale - top);
  for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
}
