// Has a kernel make a table, copies it to constant memory within the device, and launches with it.
// passes: correctness
#include "softmax.h"

constexpr int kEntries = 1024;
__constant__ float table[kEntries];

__global__ void makes(float* made, float scale) {
  for (int i = threadIdx.x; i < kEntries; i += blockDim.x) made[i] = scale;
}
__global__ void uses(const float* x, float* y, int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * table[c % kEntries]);
  for (int64_t c = 0; c < cols; ++c) sum += expf(in[c] * table[c % kEntries] - top);
  for (int64_t c = 0; c < cols; ++c) out[c] = expf(in[c] * table[c % kEntries] - top) / sum;
}
ENTRY {
  float* made;
  if (hipError_t e = hipMalloc(&made, sizeof table)) return e;
  makes<<<1, 64, 0, stream>>>(made, scale);
  if (hipError_t e = hipMemcpyToSymbol(table, made, sizeof table, 0, hipMemcpyDeviceToDevice)) {
    return e;
  }
  uses<<<rows, 1, 0, stream>>>(x, y, cols);
  if (hipError_t e = hipStreamSynchronize(stream)) return e;
  return hipFree(made);
}
