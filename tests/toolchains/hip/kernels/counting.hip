// Kernels whose accesses to memory can be counted by hand. Lines that end with a mark are those
// that the test names. Blocks have 64 threads, so two warps of 32, or one of 64.
#include <hip/hip_runtime.h>

namespace {

// --- global memory ---

template <int kStride, int kOffset>
__global__ void strided(const float* x, float* y) {
  y[threadIdx.x] = x[kStride * threadIdx.x + kOffset];
}

__global__ void broadcast(const float* x, float* y) {
  y[threadIdx.x] = x[blockIdx.x];
}

__global__ void vectors(const float4* x, float4* y) {
  const float4 value = x[threadIdx.x];
  y[threadIdx.x] = make_float4(value.x + value.y, value.y, value.z, value.w);
}

__global__ void pairs(const float2* x, float2* y) { y[threadIdx.x] = x[threadIdx.x]; }

struct Loose {
  float a, b, c;
};
__global__ void loose(const Loose* x, Loose* y) { y[threadIdx.x] = x[threadIdx.x]; }

// Rows of 16 threads: the lanes of a warp are two of them, in the order of their numbers.
__global__ void rows(const float* x, float* y) {
  const int i = 16 * threadIdx.y + threadIdx.x;
  y[i] = x[256 * threadIdx.y + threadIdx.x];
}

// Only 8 lanes of each warp take part.
__global__ void some(const float* x, float* y) {
  if (threadIdx.x % 32 < 8) y[threadIdx.x] = x[threadIdx.x];
}

// A lane comes to the access as often as its number says, modulo 4: 3, 2 and 1 times 16 lanes.
__global__ void different_counts(const float* x, float* y) {
  float sum = 0.0f;
  for (int i = 0; i < threadIdx.x % 4; ++i) sum += x[64 * i + threadIdx.x];
  y[threadIdx.x] = sum;
}

// Lanes that skip an access do not shift those behind the next barrier.
__global__ void behind_a_barrier(const float* x, float* y) {
  float sum = 0.0f;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i <= threadIdx.x % 2; ++i) sum += x[64 * i + threadIdx.x];
    __syncthreads();  // waits
  }
  y[threadIdx.x] = sum;
}

__device__ __attribute__((noinline)) float read(const float* x) { return *x; }

__global__ void reads_its_own(float* y) {
  y[threadIdx.x] = 1.0f;
  __syncthreads();
  y[blockDim.x + threadIdx.x] = y[blockDim.x - 1 - threadIdx.x];
}

// One access of the source, reached from two calls: lanes of different calls never meet.
__global__ void two_calls(const float* x, float* y) {
  float value;
  if (threadIdx.x % 2) {
    value = read(x + threadIdx.x);
  } else {
    value = 3.0f * read(x + 1024 + threadIdx.x) + 1.0f;
  }
  y[threadIdx.x] = value;
}

// So many accesses of two kinds, at so many distances, that a kind could be taken for a distance.
__global__ void unrolled(const float* x, float* y) {
  float value = 1.0f;
#pragma unroll
  for (int i = 0; i < 128; ++i) {
    value = x[i * i % 61 + threadIdx.x] + i % 5 * value;
    if (i % 7 == 3) value *= threadIdx.x;
    y[i * 7 % 127 + threadIdx.x] = value;
  }
}

// --- shared memory ---

template <int kStride>
__global__ void banks(float* y) {
  __shared__ float tile[64 * 33];
  tile[kStride * threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = tile[kStride * (63 - threadIdx.x)];
}

__global__ void same_word(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x / 64];
}

__global__ void wide_words(const float4* x, float4* y) {
  extern __shared__ float4 words[];
  words[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = words[63 - threadIdx.x];
}

__global__ void halves(const float* x, float* y) {
  __shared__ unsigned short tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];
}

// --- atomic operations ---

template <int kAddresses>
__global__ void adds(int* counts) {
  atomicAdd(&counts[threadIdx.x % kAddresses], 1);
}

__global__ void in_shared(int* counts) {
  __shared__ int sums[4];
  if (threadIdx.x < 4) sums[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&sums[threadIdx.x % 4], 1);
  __syncthreads();
  if (threadIdx.x < 4) counts[threadIdx.x] = sums[threadIdx.x];
}

// --- branches ---

// Lanes of odd numbers go another way: what they do is too much to be done by all.
__global__ void parts(const float* x, float* y) {
  float value = x[threadIdx.x];
  if (threadIdx.x % 2) {  // parts
    for (int i = 0; i < 8; ++i) value = x[64 * i + threadIdx.x] * value + 1.0f;
    y[threadIdx.x] = value;
  } else {
    y[64 + threadIdx.x] = value;
  }
}

// The whole first warp goes one way, the second the other.
__global__ void parts_by_warp(const float* x, float* y) {
  if (threadIdx.x < 32) {  // parts by warp
    y[threadIdx.x] = x[threadIdx.x];
  } else {
    y[64 + threadIdx.x] = 2.0f * x[64 + threadIdx.x];
  }
}

// --- arithmetic ---

// Each thread goes round eight times: a multiplication and an addition, a square root, a division.
__global__ void computes(const float* x, float* y) {
  float value = x[threadIdx.x];
  for (int i = 0; i < 8; ++i) {
    value = value * 1.5f + x[threadIdx.x];  // two
    value = sqrtf(value) / (value + 2.0f);  // two special, and one
  }
  const double wide = value * 0.1;          // one wide, converted twice
  y[threadIdx.x] = (float)wide;
}

// Only every fourth thread computes.
__global__ void computes_little(const float* x, float* y) {
  float value = x[threadIdx.x];
  if (threadIdx.x % 4 == 0) value = fmaf(value, value, expf(value));  // fused, and one special
  y[threadIdx.x] = value;
}

}  // namespace

extern "C" hipError_t run(const float* x, float* y, int* counts) {
  strided<1, 0><<<1, 64>>>(x, y);
  strided<2, 0><<<1, 64>>>(x, y);
  strided<32, 0><<<1, 64>>>(x, y);
  strided<1, 1><<<1, 64>>>(x, y);
  broadcast<<<1, 64>>>(x, y);
  vectors<<<1, 64>>>((const float4*)x, (float4*)y);
  pairs<<<1, 64>>>((const float2*)x, (float2*)y);
  loose<<<1, 64>>>((const Loose*)x, (Loose*)y);
  rows<<<1, dim3(16, 4)>>>(x, y);
  some<<<1, 64>>>(x, y);
  different_counts<<<1, 64>>>(x, y);
  behind_a_barrier<<<3, 64>>>(x, y);
  two_calls<<<1, 64>>>(x, y);
  unrolled<<<1, 64>>>(x, y);
  banks<1><<<1, 64>>>(y);
  banks<2><<<1, 64>>>(y);
  banks<32><<<1, 64>>>(y);
  banks<33><<<1, 64>>>(y);
  same_word<<<1, 64>>>(x, y);
  wide_words<<<1, 64, 64 * sizeof(float4)>>>((const float4*)x, (float4*)y);
  halves<<<1, 64>>>(x, y);
  adds<1><<<1, 64>>>(counts);
  adds<64><<<1, 64>>>(counts);
  adds<8><<<1, 64>>>(counts);
  in_shared<<<1, 64>>>(counts);
  parts<<<1, 64>>>(x, y);
  parts_by_warp<<<1, 64>>>(x, y);
  computes<<<2, 64>>>(x, y);
  computes_little<<<1, 64>>>(x, y);
  reads_its_own<<<1, 64>>>(y);
  return hipDeviceSynchronize();
}
