// Inclusive scan in three kernels: sums of tiles, a scan of those sums by one block, and a
// Hillis-Steele scan of each tile, whose threads scan their own elements before and after.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

// kabuild:tune kThreads = 128, 256, 512, 1024
constexpr int kThreads = 512;
// kabuild:tune kItems = 1, 2, 4, 8
constexpr int kItems = 1;  // neighbouring elements of a thread
constexpr int kTile = kThreads * kItems;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

// Inclusive Hillis-Steele scan over the block.
__device__ float block_scan(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const float left = threadIdx.x >= distance ? scratch[threadIdx.x - distance] : 0.0f;
    __syncthreads();
    scratch[threadIdx.x] += left;
    __syncthreads();
  }
  return scratch[threadIdx.x];
}

template <class T> __global__ void sum_tiles(const T* x, float* sums, int64_t n) {
  __shared__ float scratch[kThreads];
  const int64_t first = (int64_t)blockIdx.x * kTile + threadIdx.x * kItems;
  float sum = 0.0f;
  for (int i = 0; i < kItems; ++i) {
    sum += first + i < n ? to_float(x[first + i]) : 0.0f;
  }
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = scratch[0];
  }
}

// Turns the tiles' sums into the sum before each tile; one block.
__global__ void scan_sums(float* sums, int64_t tiles) {
  __shared__ float scratch[kThreads];
  float carry = 0.0f;
  for (int64_t start = 0; start < tiles; start += kThreads) {
    const int64_t i = start + threadIdx.x;
    block_scan(i < tiles ? sums[i] : 0.0f, scratch);
    if (i < tiles) {
      sums[i] = carry + (threadIdx.x > 0 ? scratch[threadIdx.x - 1] : 0.0f);
    }
    carry += scratch[kThreads - 1];
    __syncthreads();
  }
}

template <class T>
__global__ void scan_tiles(const T* x, T* y, const float* before, int64_t n) {
  __shared__ float scratch[kThreads];
  const int64_t first = (int64_t)blockIdx.x * kTile + threadIdx.x * kItems;
  float inclusive[kItems];  // of the thread's own elements
  float sum = 0.0f;
  for (int i = 0; i < kItems; ++i) {
    sum += first + i < n ? to_float(x[first + i]) : 0.0f;
    inclusive[i] = sum;
  }
  block_scan(sum, scratch);
  const float left = threadIdx.x > 0 ? scratch[threadIdx.x - 1] : 0.0f;
  for (int i = 0; i < kItems; ++i) {
    if (first + i < n) {
      y[first + i] = from_float<T>(before[blockIdx.x] + left + inclusive[i]);
    }
  }
}

int64_t tile_count(int64_t n) { return (n + kTile - 1) / kTile; }

template <class T>
hipError_t scan(const T* x, T* y, int64_t n, void* workspace, hipStream_t stream) {
  const int64_t tiles = tile_count(n);
  const dim3 grid((unsigned)tiles);
  float* sums = static_cast<float*>(workspace);
  sum_tiles<T><<<grid, dim3(kThreads), 0, stream>>>(x, sums, n);
  scan_sums<<<dim3(1), dim3(kThreads), 0, stream>>>(sums, tiles);
  scan_tiles<T><<<grid, dim3(kThreads), 0, stream>>>(x, y, sums, n);
  return hipGetLastError();
}

}  // namespace

extern "C" size_t scan_f32_workspace(int64_t n) { return tile_count(n) * sizeof(float); }

extern "C" size_t scan_f16_workspace(int64_t n) { return tile_count(n) * sizeof(float); }

extern "C" hipError_t scan_f32(const float* x, float* y, int64_t n, void* workspace,
                               hipStream_t stream) {
  return scan(x, y, n, workspace, stream);
}

extern "C" hipError_t scan_f16(const __half* x, __half* y, int64_t n, void* workspace,
                               hipStream_t stream) {
  return scan(x, y, n, workspace, stream);
}
