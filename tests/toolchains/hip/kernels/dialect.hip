// The many ways to write a declaration.
#include <hip/hip_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

extern __shared__ int pool[];

namespace {
__global__ void anonymous(int* out) { out[threadIdx.x] = 1; }
}  // namespace

static __global__ void first_static(int* out) { out[threadIdx.x] += 2; }
__global__ static void then_static(int* out) { out[threadIdx.x] += 4; }

__global__ void declared_first(int* out, int value);

extern "C" __global__ void __launch_bounds__(256, 2) with_c_linkage(int* __restrict__ out) {
  out[threadIdx.x] += 8;
}

struct Adder {
  int value;
  __host__ __device__ __forceinline__ int operator()(int x) const { return x + value; }
  static __device__ int twice(int x) { return 2 * x; }
};

template <typename F>
__global__ void transform(int* out, F f) {
  out[threadIdx.x] = f(out[threadIdx.x]);
}

template <typename T, int N>
__device__ __noinline__ T reverse_in_tile(T value) {
  __shared__ T tile[N];
  tile[threadIdx.x] = value;
  __syncthreads();
  return tile[N - 1 - threadIdx.x];
}

template <typename T, int N>
__global__ void reverse(T* out) {
  out[threadIdx.x] = reverse_in_tile<T, N>(out[threadIdx.x]);
}
template __global__ void reverse<int, 32>(int*);

__global__ void many_shared(int* out) {
  volatile __shared__ int a[64];
  __shared__ __align__(16) int b[64], c;
  __shared__ alignas(16) int2 pairs[64];
  const int t = threadIdx.x;
  a[t] = t;
  pairs[t] = make_int2(t, 2 * t);
  if (t == 0) c = 100;
  __syncthreads();
  b[t] = a[63 - t] + c;
  __syncthreads();
  out[t] = b[63 - t] + pairs[63 - t].y;
}

__global__ void global_pool(int* out) {
  pool[threadIdx.x] = threadIdx.x;
  int* rest = pool + blockDim.x;
  float* floats = (float*)pool + 2 * blockDim.x;
  rest[threadIdx.x] = 10 * threadIdx.x;
  floats[threadIdx.x] = 0.5f * threadIdx.x;
  __syncthreads();
  const int other = blockDim.x - 1 - threadIdx.x;
  out[threadIdx.x] = pool[other] + rest[other] + static_cast<int>(2.0f * floats[other]);
}

__global__ void declared_first(int* out, int value) { out[threadIdx.x] += value; }

__global__ void standard_library(int* out) {
  using std::max;
  const int t = threadIdx.x;
  static_assert(std::is_integral<decltype(t)>::value, "threads are numbered");
  out[t] = std::max(t, 3) + max(t, 5) + static_cast<int>(std::floor(std::sqrt(float(t)))) +
           static_cast<int>(std::abs(-1.5f) * 2) + static_cast<int>(std::int64_t{1});
}

extern "C" {

hipError_t launch_all_forms(int* out) {
  anonymous<<<1, 64>>>(out);
  first_static<<<1, 64>>>(out);
  then_static<<<dim3(1), 64>>>(out);
  with_c_linkage<<<dim3{1, 1, 1}, dim3{64, 1, 1}>>>(out);
  declared_first<<<1, dim3{64}>>>(out, 16);
  transform<<<1, 64>>>(out, Adder{32});
  const int offset = 64;
  auto lambda = [=] __device__(int x) { return Adder::twice(x + offset); };
  transform<<<1, 64>>>(out, lambda);
  return hipGetLastError();
}

hipError_t launch_reverse(int* out) {
  reverse<int, 32><<<1, 32>>>(out);
  return hipGetLastError();
}

hipError_t launch_many_shared(int* out) {
  many_shared<<<1, 64>>>(out);
  return hipGetLastError();
}

hipError_t launch_global_pool(int* out, int threads) {
  global_pool<<<1, threads, 3 * threads * sizeof(int)>>>(out);
  return hipGetLastError();
}

hipError_t launch_standard_library(int* out) {
  standard_library<<<1, 64>>>(out);
  return hipGetLastError();
}

}
