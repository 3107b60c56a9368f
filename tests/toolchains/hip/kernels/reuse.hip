// Kernels whose accesses to the same sectors of 32 bytes are as far apart as can be told by hand.
#include <hip/hip_runtime.h>

namespace {

// Nothing is accessed twice: 32 sectors of each tensor.
__global__ void copies(const float* x, float* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
}

// Each half of a wave loads four sectors, and in the same round those of the other half.
__global__ void mirrors(const float* x, float* y) {
  float sum = 0.0f;
  for (int k = 0; k < 8; ++k) sum += x[64 * k + threadIdx.x] * x[64 * k + 63 - threadIdx.x];
  y[threadIdx.x] = sum;
}

// A product of 32 x 32 matrices by tiles of 16 x 16, each of 32 sectors.
__global__ void multiplies(const float* a, const float* b, float* c) {
  __shared__ float left[16][16];
  __shared__ float right[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int first = 0; first < 32; first += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * 32 + first + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * 32 + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * 32 + column] = sum;
}

// A 64 x 64 matrix; each block reads a row of 8 sectors and writes a column of 64 sectors.
__global__ void transposes(const float* x, float* y) {
  y[threadIdx.x * 64 + blockIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}

// Two blocks update the same eight sectors.
__global__ void adds(float* y) { atomicAdd(&y[threadIdx.x], 1.0f); }

// As many sectors as two to the power of 17, twice, by lanes that load one each.
__global__ void sweeps(const float* x, float* y) {
  const int i = (blockIdx.x * 256 + threadIdx.x) % (1 << 17);
  if (x[8 * i] > 1.0f) y[0] = 1.0f;
}

}  // namespace

extern "C" hipError_t run(const float* x, float* y, int* counts) {
  copies<<<4, 64>>>(x, y);
  mirrors<<<1, 64>>>(x, y);
  multiplies<<<dim3(2, 2), dim3(16, 16)>>>(x, x + 1024, y);
  transposes<<<64, 64>>>(x, y);
  adds<<<2, 64>>>(y);
  sweeps<<<1024, 256>>>(x, y);
  return hipDeviceSynchronize();
}
