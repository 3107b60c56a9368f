// A product with a block-sparse weight: each block of threads computes 32 x 32 elements of y and
// walks over the blocks of its block row, with tiles of x and of the weight in shared memory.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

constexpr int kTile = 32;
constexpr int kDown = 8;  // threads; each has kTile / kDown rows

template <class T>
__global__ void product(const T* x, const T* value, const int32_t* column, const int32_t* begin,
                        T* y, int64_t rows, int64_t across, int64_t down) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile + 1];
  const int64_t first = (int64_t)blockIdx.y * kTile;
  const int64_t out = blockIdx.x;
  float sums[kTile / kDown] = {};
  for (int64_t block = begin[out]; block < begin[out + 1]; ++block) {
    for (int i = threadIdx.y; i < kTile; i += kDown) {
      const int64_t row = first + i;
      const int64_t col = column[block] * kTile + threadIdx.x;
      left[i][threadIdx.x] = row < rows ? to_float(x[row * across * kTile + col]) : 0.0f;
      right[i][threadIdx.x] = to_float(value[(block * kTile + i) * kTile + threadIdx.x]);
    }
    __syncthreads();
    for (int k = 0; k < kTile / kDown; ++k) {
      for (int i = 0; i < kTile; ++i) {
        sums[k] += left[threadIdx.y + k * kDown][i] * right[threadIdx.x][i];
      }
    }
    __syncthreads();
  }
  for (int k = 0; k < kTile / kDown; ++k) {
    const int64_t row = first + threadIdx.y + k * kDown;
    if (row < rows) {
      y[(row * down + out) * kTile + threadIdx.x] = from_float<T>(sums[k]);
    }
  }
}

template <class T>
hipError_t block_sparse_matmul(const T* x, const T* value, const int32_t* column,
                               const int32_t* begin, T* y, int64_t rows, int64_t across,
                               int64_t down, int64_t blocks, hipStream_t stream) {
  const dim3 grid((unsigned)down, (unsigned)((rows + kTile - 1) / kTile));
  product<T><<<grid, dim3(kTile, kDown), 0, stream>>>(x, value, column, begin, y, rows, across,
                                                      down);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t block_sparse_matmul_f16(const __half* x, const __half* value,
                                              const int32_t* column, const int32_t* begin,
                                              __half* y, int64_t rows, int64_t across, int64_t down,
                                              int64_t blocks, hipStream_t stream) {
  return block_sparse_matmul(x, value, column, begin, y, rows, across, down, blocks, stream);
}

extern "C" hipError_t block_sparse_matmul_bf16(const __hip_bfloat16* x, const __hip_bfloat16* value,
                                               const int32_t* column, const int32_t* begin,
                                               __hip_bfloat16* y, int64_t rows, int64_t across,
                                               int64_t down, int64_t blocks, hipStream_t stream) {
  return block_sparse_matmul(x, value, column, begin, y, rows, across, down, blocks, stream);
}

extern "C" hipError_t block_sparse_matmul_f32(const float* x, const float* value,
                                              const int32_t* column, const int32_t* begin, float* y,
                                              int64_t rows, int64_t across, int64_t down,
                                              int64_t blocks, hipStream_t stream) {
  return block_sparse_matmul(x, value, column, begin, y, rows, across, down, blocks, stream);
}
