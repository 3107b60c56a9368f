// How long a GPU's caches and memory take to answer, and its core's clock: what machines of one
// kind differ by although their clocks are equal.
//
//     nvcc -O2 -arch=sm_90 tests/device/latency.cu -o latency && ./latency
//
// One thread follows a chain of addresses in random order, each load waiting for the one before.
// L2: 4 MiB, a load in each 128 bytes, after one pass. Memory: 2 GiB, a load in each 4 KiB, the
// first of three passes; the others find L2 or memory, as there is room.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <utility>
#include <vector>

__global__ void spin(long long n, long long* out) {
  long long a = clock64();
  unsigned long long g0, g1;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(g0));
  while (clock64() - a < n)
    ;
  long long b = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(g1));
  out[0] = b - a;
  out[1] = g1 - g0;
}

__global__ void chase(const unsigned* p, int steps, long long* out) {
  unsigned i = 0;
  for (int k = 0; k < steps; k++) i = __ldcg(p + i);
  long long a = clock64();
  for (int k = 0; k < steps; k++) i = __ldcg(p + i);
  long long b = clock64();
  out[0] = b - a;
  out[1] = i;
}

__global__ void chase_cold(const unsigned* p, unsigned start, int steps, long long* out) {
  unsigned i = start;
  long long a = clock64();
  for (int k = 0; k < steps; k++) i = __ldcg(p + i);
  long long b = clock64();
  out[0] = b - a;
  out[1] = i;
}

// A chain through `bytes` of device memory, one link in each `stride` bytes, and its first link.
std::pair<unsigned*, size_t> chain(size_t bytes, size_t stride) {
  size_t n = bytes / 4, s = stride / 4, m = n / s;
  std::vector<unsigned> order(m);
  for (size_t i = 0; i < m; i++) order[i] = i;
  srand(7);
  for (size_t i = m - 1; i > 0; i--) {
    size_t j = ((size_t)rand() * 32768u + rand()) % i;
    std::swap(order[i], order[j]);
  }
  std::vector<unsigned> links(n, 0);
  for (size_t i = 0; i < m; i++) links[order[i] * s] = (unsigned)(order[(i + 1) % m] * s);
  unsigned* there;
  cudaMalloc(&there, bytes);
  cudaMemcpy(there, links.data(), bytes, cudaMemcpyHostToDevice);
  return {there, (size_t)order[0] * s};
}

int main() {
  long long* out;
  if (cudaError_t error = cudaMallocManaged(&out, 32)) {
    fprintf(stderr, "latency: %s\n", cudaGetErrorString(error));
    return 1;
  }
  double mhz = 0;
  for (int r = 0; r < 3; r++) {
    spin<<<1, 1>>>(1000000000LL, out);
    cudaDeviceSynchronize();
    mhz = 1e3 * out[0] / out[1];
    printf("clock %.2f MHz\n", mhz);
  }
  const int near = 32768, far = 200000;
  auto small = chain(4u << 20, 128);
  for (int r = 0; r < 3; r++) {
    chase<<<1, 1>>>(small.first, near, out);
    cudaDeviceSynchronize();
    printf("L2 %.1f cycles\n", (double)out[0] / near);
  }
  auto large = chain(2048ull << 20, 4096);
  for (int r = 0; r < 3; r++) {
    chase_cold<<<1, 1>>>(large.first, large.second, far, out);
    cudaDeviceSynchronize();
    printf("memory %.1f cycles %.1f ns\n", (double)out[0] / far, (double)out[0] / far / mhz * 1e3);
  }
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
