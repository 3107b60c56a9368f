// c = a @ b, one 16x16 tile of c a block, one element a thread; tiles of a and b pass
// through shared memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

// kabuild:tune kTile = 8, 16, 32
constexpr int kTile = 16;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

template <class T>
__global__ void gemm_tiles(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int64_t row = (int64_t)blockIdx.y * kTile + threadIdx.y;
  const int64_t col = (int64_t)blockIdx.x * kTile + threadIdx.x;

  float sum = 0.0f;
  for (int64_t start = 0; start < k; start += kTile) {
    const int64_t a_col = start + threadIdx.x;
    const int64_t b_row = start + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < m && a_col < k ? to_float(a[row * k + a_col]) : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = b_row < k && col < n ? to_float(b[b_row * n + col]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (row < m && col < n) {
    c[row * n + col] = from_float<T>(sum);
  }
}

template <class T>
hipError_t gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k,
                hipStream_t stream) {
  const dim3 grid((unsigned)((n + kTile - 1) / kTile), (unsigned)((m + kTile - 1) / kTile));
  gemm_tiles<T><<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c, m, n, k);
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
