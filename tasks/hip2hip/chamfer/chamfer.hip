// Nearest points of two clouds: one launch a direction, one thread a point, which compares it with
// the other cloud's points, a tile of them at a time in shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

constexpr int kThreads = 128;

template <class T>
__global__ void nearest(const T* from, const T* to, float* near, int64_t n, int64_t m) {
  __shared__ float tile[kThreads][3];
  const int64_t cloud = blockIdx.y;
  const int64_t point = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t known = point < n ? point : n - 1;
  const float x = to_float(from[(cloud * n + known) * 3]);
  const float y = to_float(from[(cloud * n + known) * 3 + 1]);
  const float z = to_float(from[(cloud * n + known) * 3 + 2]);
  float least = INFINITY;
  for (int64_t start = 0; start < m; start += kThreads) {
    const int64_t count = m - start < kThreads ? m - start : kThreads;
    if (threadIdx.x < count) {
      for (int axis = 0; axis < 3; ++axis) {
        tile[threadIdx.x][axis] = to_float(to[(cloud * m + start + threadIdx.x) * 3 + axis]);
      }
    }
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      const float dx = x - tile[i][0];
      const float dy = y - tile[i][1];
      const float dz = z - tile[i][2];
      least = fminf(least, dx * dx + dy * dy + dz * dz);
    }
    __syncthreads();
  }
  if (point < n) {
    near[cloud * n + point] = least;
  }
}

template <class T>
hipError_t chamfer(const T* a, const T* b, float* near_a, float* near_b, int64_t batch, int64_t n,
                   int64_t m, hipStream_t stream) {
  const dim3 threads(kThreads);
  const dim3 of_a((unsigned)((n + kThreads - 1) / kThreads), (unsigned)batch);
  nearest<T><<<of_a, threads, 0, stream>>>(a, b, near_a, n, m);
  const dim3 of_b((unsigned)((m + kThreads - 1) / kThreads), (unsigned)batch);
  nearest<T><<<of_b, threads, 0, stream>>>(b, a, near_b, m, n);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t chamfer_f32(const float* a, const float* b, float* near_a, float* near_b,
                                  int64_t batch, int64_t n, int64_t m, hipStream_t stream) {
  return chamfer(a, b, near_a, near_b, batch, n, m, stream);
}

extern "C" hipError_t chamfer_f16(const __half* a, const __half* b, float* near_a, float* near_b,
                                  int64_t batch, int64_t n, int64_t m, hipStream_t stream) {
  return chamfer(a, b, near_a, near_b, batch, n, m, stream);
}
