// Barriers: trees in shared memory, early exits, votes of a block, state across blocks.
#include <hip/hip_runtime.h>

__global__ void block_sums(const float* in, float* out, int n) {
  __shared__ float partial[256];
  const int t = threadIdx.x;
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  partial[t] = sum;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) partial[t] += partial[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}

// Half of the threads return before the barrier; the others still meet at it.
__global__ void leave_early(int* out) {
  __shared__ int shared[256];
  const int t = threadIdx.x;
  if (t % 2 == 1) return;
  shared[t] = t;
  __syncthreads();
  out[t] = shared[(t + 2) % blockDim.x];
}

__global__ void votes(int* out, int threshold) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(t < threshold);
  const int any = __syncthreads_or(t == threshold);
  const int all = __syncthreads_and(t < threshold);
  out[t] = count * 4 + any * 2 + all;
}

// The last block to finish adds up what the others have left.
__global__ void last_block(const float* in, float* parts, unsigned* finished, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    last = atomicAdd(finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  float sum = 0.0f;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
  *out = sum;
}

__global__ void large_shared(float* out) {
  __shared__ float rows[64][256];
  for (int r = 0; r < 64; ++r) rows[r][threadIdx.x] = r + threadIdx.x;
  __syncthreads();
  float sum = 0.0f;
  for (int r = 0; r < 64; ++r) sum += rows[r][255 - threadIdx.x];
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

template <int Tile>
__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[Tile][Tile];
  __shared__ float right[Tile][Tile + 1];
  const int row = blockIdx.y * Tile + threadIdx.y;
  const int column = blockIdx.x * Tile + threadIdx.x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < k; k0 += Tile) {
    const int left_column = k0 + threadIdx.x;
    const int right_row = k0 + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < m && left_column < k ? a[row * k + left_column] : 0.0f;
    right[threadIdx.y][threadIdx.x] =
        right_row < k && column < n ? b[right_row * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Tile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

extern "C" {

hipError_t launch_block_sums(const float* in, float* out, int n, int blocks) {
  block_sums<<<blocks, 256>>>(in, out, n);
  return hipGetLastError();
}

hipError_t launch_leave_early(int* out, int threads) {
  leave_early<<<1, threads>>>(out);
  return hipGetLastError();
}

hipError_t launch_votes(int* out, int threads, int threshold) {
  votes<<<1, threads>>>(out, threshold);
  return hipGetLastError();
}

hipError_t launch_last_block(const float* in, float* parts, unsigned* finished, float* out,
                             int blocks) {
  last_block<<<blocks, 64>>>(in, parts, finished, out);
  return hipGetLastError();
}

hipError_t launch_large_shared(float* out, int blocks) {
  large_shared<<<blocks, 256>>>(out);
  return hipGetLastError();
}

hipError_t launch_multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  const dim3 grid((n + 15) / 16, (m + 15) / 16);
  multiply<16><<<grid, dim3(16, 16)>>>(a, b, c, m, n, k);
  return hipGetLastError();
}

}
