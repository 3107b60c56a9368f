// A wave a row, which reduces by shuffles, several waves a block.
// passes: correctness perf unseen
#include "softmax.h"

constexpr int kWaves = 4;

__device__ float greatest(float v) {
  for (int lane = warpSize / 2; lane > 0; lane /= 2) v = fmaxf(v, __shfl_xor(v, lane));
  return v;
}
__device__ float total(float v) {
  for (int lane = warpSize / 2; lane > 0; lane /= 2) v += __shfl_xor(v, lane);
  return v;
}
__global__ void waves(const float* x, float* y, float scale, int64_t rows, int64_t cols) {
  const int lane = threadIdx.x % warpSize;
  const int64_t row = blockIdx.x * (int64_t)kWaves + threadIdx.x / warpSize;
  if (row >= rows) return;
  const float* in = x + row * cols;
  float top = -INFINITY, sum = 0;
  for (int64_t c = lane; c < cols; c += warpSize) top = fmaxf(top, in[c] * scale);
  top = greatest(top);
  for (int64_t c = lane; c < cols; c += warpSize) sum += expf(in[c] * scale - top);
  sum = total(sum);
  for (int64_t c = lane; c < cols; c += warpSize) {
    y[row * cols + c] = expf(in[c] * scale - top) / sum;
  }
}

ENTRY {
  int wave = 64;
  if (hipDeviceGetAttribute(&wave, hipDeviceAttributeWarpSize, 0) != hipSuccess) wave = 64;
  waves<<<(rows + kWaves - 1) / kWaves, kWaves * wave, 0, stream>>>(x, y, scale, rows, cols);
  return hipGetLastError();
}
