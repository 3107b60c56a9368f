// A gated feed-forward block: one kernel with tiles of 16 x 16 computes both products of the input
// and the activation, a second one the product with the weights down.
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

constexpr int kTile = 16;

// Elements of a tile of a [rows, cols] matrix; zero outside of it.
template <class T>
__device__ float element(const T* matrix, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  return row < rows && col < cols ? to_float(matrix[row * cols + col]) : 0.0f;
}

template <class T>
__global__ void gated(const T* x, const T* gate, const T* up, float* h, int64_t rows, int64_t cols,
                      int64_t hidden) {
  __shared__ float left[kTile][kTile];
  __shared__ float of_gate[kTile][kTile + 1];
  __shared__ float of_up[kTile][kTile + 1];
  const int64_t row = (int64_t)blockIdx.y * kTile + threadIdx.y;
  const int64_t unit = (int64_t)blockIdx.x * kTile + threadIdx.x;
  const int64_t loaded = (int64_t)blockIdx.x * kTile + threadIdx.y;
  float opened = 0.0f;
  float value = 0.0f;
  for (int64_t start = 0; start < cols; start += kTile) {
    const int64_t col = start + threadIdx.x;
    left[threadIdx.y][threadIdx.x] = element(x, row, col, rows, cols);
    of_gate[threadIdx.y][threadIdx.x] = element(gate, loaded, col, hidden, cols);
    of_up[threadIdx.y][threadIdx.x] = element(up, loaded, col, hidden, cols);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      opened += left[threadIdx.y][i] * of_gate[threadIdx.x][i];
      value += left[threadIdx.y][i] * of_up[threadIdx.x][i];
    }
    __syncthreads();
  }
  if (row < rows && unit < hidden) {
    h[row * hidden + unit] = opened / (1.0f + expf(-opened)) * value;
  }
}

template <class T>
__global__ void projected(const float* h, const T* down, T* y, int64_t rows, int64_t cols,
                          int64_t hidden) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile + 1];
  const int64_t row = (int64_t)blockIdx.y * kTile + threadIdx.y;
  const int64_t col = (int64_t)blockIdx.x * kTile + threadIdx.x;
  const int64_t loaded = (int64_t)blockIdx.x * kTile + threadIdx.y;
  float sum = 0.0f;
  for (int64_t start = 0; start < hidden; start += kTile) {
    const int64_t unit = start + threadIdx.x;
    left[threadIdx.y][threadIdx.x] = element(h, row, unit, rows, hidden);
    right[threadIdx.y][threadIdx.x] = element(down, loaded, unit, cols, hidden);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += left[threadIdx.y][i] * right[threadIdx.x][i];
    }
    __syncthreads();
  }
  if (row < rows && col < cols) {
    y[row * cols + col] = from_float<T>(sum);
  }
}

unsigned tiles(int64_t n) { return (unsigned)((n + kTile - 1) / kTile); }

size_t swiglu_mlp_workspace(int64_t rows, int64_t cols, int64_t hidden) {
  return rows * hidden * sizeof(float);
}

template <class T>
hipError_t swiglu_mlp(const T* x, const T* gate, const T* up, const T* down, T* y, int64_t rows,
                      int64_t cols, int64_t hidden, void* workspace, hipStream_t stream) {
  float* h = (float*)workspace;
  const dim3 threads(kTile, kTile);
  gated<T><<<dim3(tiles(hidden), tiles(rows)), threads, 0, stream>>>(x, gate, up, h, rows, cols,
                                                                     hidden);
  projected<T><<<dim3(tiles(cols), tiles(rows)), threads, 0, stream>>>(h, down, y, rows, cols,
                                                                       hidden);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t swiglu_mlp_f32(const float* x, const float* gate, const float* up,
                                     const float* down, float* y, int64_t rows, int64_t cols,
                                     int64_t hidden, void* workspace, hipStream_t stream) {
  return swiglu_mlp(x, gate, up, down, y, rows, cols, hidden, workspace, stream);
}

extern "C" size_t swiglu_mlp_f32_workspace(int64_t rows, int64_t cols, int64_t hidden) {
  return swiglu_mlp_workspace(rows, cols, hidden);
}

extern "C" hipError_t swiglu_mlp_f16(const __half* x, const __half* gate, const __half* up,
                                     const __half* down, __half* y, int64_t rows, int64_t cols,
                                     int64_t hidden, void* workspace, hipStream_t stream) {
  return swiglu_mlp(x, gate, up, down, y, rows, cols, hidden, workspace, stream);
}

extern "C" size_t swiglu_mlp_f16_workspace(int64_t rows, int64_t cols, int64_t hidden) {
  return swiglu_mlp_workspace(rows, cols, hidden);
}

extern "C" hipError_t swiglu_mlp_bf16(const __hip_bfloat16* x, const __hip_bfloat16* gate,
                                      const __hip_bfloat16* up, const __hip_bfloat16* down,
                                      __hip_bfloat16* y, int64_t rows, int64_t cols, int64_t hidden,
                                      void* workspace, hipStream_t stream) {
  return swiglu_mlp(x, gate, up, down, y, rows, cols, hidden, workspace, stream);
}

extern "C" size_t swiglu_mlp_bf16_workspace(int64_t rows, int64_t cols, int64_t hidden) {
  return swiglu_mlp_workspace(rows, cols, hidden);
}
