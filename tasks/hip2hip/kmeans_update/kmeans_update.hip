// Means of the points of centres: sums and counts by atomics in global memory, with a thread for
// each element of x, and a division afterwards.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

constexpr int kThreads = 256;

__global__ void clear(float* sums, int32_t* count, int64_t centres, int64_t dim) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < centres * dim) {
    sums[i] = 0.0f;
  }
  if (i < centres) {
    count[i] = 0;
  }
}

template <class T>
__global__ void gather(const T* x, const int32_t* nearest, float* sums, int32_t* count,
                       int64_t points, int64_t dim) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i >= points * dim) {
    return;
  }
  const int64_t centre = nearest[i / dim];
  atomicAdd(&sums[centre * dim + i % dim], to_float(x[i]));
  if (i % dim == 0) {
    atomicAdd(&count[centre], 1);
  }
}

__global__ void divide(const float* old, float* sums, const int32_t* count, int64_t centres,
                       int64_t dim) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < centres * dim) {
    const int32_t own = count[i / dim];
    sums[i] = own > 0 ? sums[i] / (float)own : old[i];
  }
}

unsigned blocks_of(int64_t n) { return (unsigned)((n + kThreads - 1) / kThreads); }

template <class T>
hipError_t kmeans_update(const T* x, const int32_t* nearest, const float* old, float* centre_new,
                         int32_t* count, int64_t points, int64_t dim, int64_t centres,
                         hipStream_t stream) {
  const dim3 threads(kThreads);
  const dim3 of_sums(blocks_of(centres * dim));
  clear<<<of_sums, threads, 0, stream>>>(centre_new, count, centres, dim);
  gather<T><<<dim3(blocks_of(points * dim)), threads, 0, stream>>>(x, nearest, centre_new, count,
                                                                   points, dim);
  divide<<<of_sums, threads, 0, stream>>>(old, centre_new, count, centres, dim);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t kmeans_update_f32(const float* x, const int32_t* nearest, const float* old,
                                        float* centre_new, int32_t* count, int64_t points,
                                        int64_t dim, int64_t centres, hipStream_t stream) {
  return kmeans_update(x, nearest, old, centre_new, count, points, dim, centres, stream);
}

extern "C" hipError_t kmeans_update_f16(const __half* x, const int32_t* nearest, const float* old,
                                        float* centre_new, int32_t* count, int64_t points,
                                        int64_t dim, int64_t centres, hipStream_t stream) {
  return kmeans_update(x, nearest, old, centre_new, count, points, dim, centres, stream);
}

extern "C" hipError_t kmeans_update_bf16(const __hip_bfloat16* x, const int32_t* nearest,
                                         const float* old, float* centre_new, int32_t* count,
                                         int64_t points, int64_t dim, int64_t centres,
                                         hipStream_t stream) {
  return kmeans_update(x, nearest, old, centre_new, count, points, dim, centres, stream);
}
