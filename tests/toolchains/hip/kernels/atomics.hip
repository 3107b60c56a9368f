// Atomic operations from many blocks at once.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

__global__ void histogram(const int* in, int* bins, int n) {
  __shared__ int local[64];
  for (int i = threadIdx.x; i < 64; i += blockDim.x) local[i] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&local[in[i] % 64], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < 64; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}

__global__ void add_one(int* i32, unsigned long long* u64, float* f32, double* f64, __half* f16,
                        __hip_bfloat16* bf16, __half2* pair) {
  atomicAdd(i32, 1);
  atomicAdd(u64, 1ull << 33);
  atomicAdd(f32, 0.5f);
  unsafeAtomicAdd(f64, 0.25);
  if (threadIdx.x == 0) {
    atomicAdd(f16, __float2half(1.0f));
    atomicAdd(bf16, __float2bfloat16(1.0f));
    atomicAdd(pair, __halves2half2(__float2half(1.0f), __float2half(2.0f)));
  }
}

__global__ void others(int* out, unsigned* wrapped) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMax(&out[0], i);
  atomicMin(&out[1], -i);
  atomicOr(&out[2], 1 << (i % 20));
  atomicAnd(&out[3], ~(1 << (i % 20)));
  atomicXor(&out[4], i);
  atomicSub(&out[5], 1);
  atomicInc(&wrapped[0], 9);
  atomicDec(&wrapped[1], 9);
  if (i == 0) atomicExch(&out[6], 42);
}

// A lock of one word: compare-and-swap gives it to one thread of a block at a time.
__global__ void locked_increment(int* lock, int* count) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  const int before = __hip_atomic_load(count, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_store(count, before + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __threadfence();
  atomicExch(lock, 0);
}

extern "C" {

hipError_t launch_histogram(const int* in, int* bins, int n) {
  histogram<<<(n + 255) / 256, 256>>>(in, bins, n);
  return hipGetLastError();
}

hipError_t launch_add_one(int* i32, unsigned long long* u64, float* f32, double* f64, __half* f16,
                          __hip_bfloat16* bf16, __half2* pair) {
  add_one<<<100, 64>>>(i32, u64, f32, f64, f16, bf16, pair);
  return hipGetLastError();
}

hipError_t launch_others(int* out, unsigned* wrapped) {
  others<<<100, 64>>>(out, wrapped);
  return hipGetLastError();
}

hipError_t launch_locked_increment(int* lock, int* count) {
  locked_increment<<<1000, 64>>>(lock, count);
  return hipGetLastError();
}

}
