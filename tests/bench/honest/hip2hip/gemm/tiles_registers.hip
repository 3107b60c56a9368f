// c = a @ b with a 4x4 tile of c in the registers of each thread.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

constexpr int kSide = 8;             // threads of a block, each way
constexpr int kEach = 4;             // elements of a thread, each way
constexpr int kTile = kSide * kEach;
constexpr int kDepth = 8;

template <class T>
__global__ void tiles(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
  __shared__ float left[kDepth][kTile];
  __shared__ float right[kDepth][kTile];
  const int64_t top = (int64_t)blockIdx.y * kTile, side = (int64_t)blockIdx.x * kTile;
  const int me = threadIdx.y * kSide + threadIdx.x;
  float sum[kEach][kEach] = {};
  for (int64_t start = 0; start < k; start += kDepth) {
    for (int i = me; i < kDepth * kTile; i += kSide * kSide) {
      const int64_t d = start + i / kTile, row = top + i % kTile, col = side + i % kTile;
      left[i / kTile][i % kTile] = row < m && d < k ? to_float(a[row * k + d]) : 0.0f;
      right[i / kTile][i % kTile] = col < n && d < k ? to_float(b[d * n + col]) : 0.0f;
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) {
          sum[i][j] += left[d][threadIdx.y * kEach + i] * right[d][threadIdx.x * kEach + j];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      const int64_t row = top + threadIdx.y * kEach + i, col = side + threadIdx.x * kEach + j;
      if (row < m && col < n) c[row * n + col] = from_float<T>(sum[i][j]);
    }
  }
}

template <class T>
hipError_t gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k,
                hipStream_t stream) {
  const dim3 grid((unsigned)((n + kTile - 1) / kTile), (unsigned)((m + kTile - 1) / kTile));
  tiles<T><<<grid, dim3(kSide, kSide), 0, stream>>>(a, b, c, m, n, k);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                               int64_t k, hipStream_t stream) {
  return gemm(a, b, c, m, n, k, stream);
}

extern "C" hipError_t gemm_f16(const __half* a, const __half* b, __half* c, int64_t m, int64_t n,
                               int64_t k, hipStream_t stream) {
  return gemm(a, b, c, m, n, k, stream);
}
