// Equalisation of histograms in three kernels: counts by atomics in shared memory, which blocks add
// to the plane's, a table for each plane, and a lookup for each pixel.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

constexpr int kValues = 256;
constexpr int kThreads = 256;
constexpr int64_t kPixelsOfBlock = 4096;

__global__ void clear(int32_t* counts, int64_t total) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < total) {
    counts[i] = 0;
  }
}

__global__ void count(const uint8_t* x, int32_t* counts, int64_t pixels) {
  __shared__ int32_t own[kValues];
  own[threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = blockIdx.x * kPixelsOfBlock;
  const int64_t last = first + kPixelsOfBlock < pixels ? first + kPixelsOfBlock : pixels;
  for (int64_t i = first + threadIdx.x; i < last; i += kThreads) {
    atomicAdd(&own[x[blockIdx.y * pixels + i]], 1);
  }
  __syncthreads();
  if (own[threadIdx.x] > 0) {
    atomicAdd(&counts[blockIdx.y * kValues + threadIdx.x], own[threadIdx.x]);
  }
}

// One block a plane, a thread for each value.
__global__ void make_tables(const int32_t* counts, uint8_t* tables, int64_t pixels) {
  __shared__ int32_t sums[kValues];
  __shared__ int32_t most;
  const int value = threadIdx.x;
  const int32_t own = counts[blockIdx.x * kValues + value];
  sums[value] = own;
  if (value == 0) {
    most = 0;
  }
  __syncthreads();
  if (own > 0) {
    atomicMax(&most, value);
  }
  for (int back = 1; back < kValues; back *= 2) {
    const int32_t before = value >= back ? sums[value - back] : 0;
    __syncthreads();
    sums[value] += before;
    __syncthreads();
  }
  const int64_t step = (pixels - counts[blockIdx.x * kValues + most]) / 255;
  int64_t result = value;
  if (step > 0) {
    const int64_t spread = (sums[value] - own + step / 2) / step;
    result = spread < 255 ? spread : 255;
  }
  tables[blockIdx.x * kValues + value] = (uint8_t)result;
}

template <class T>
__global__ void look_up(const uint8_t* x, const uint8_t* tables, T* y, const float* mean,
                        const float* factor, int64_t pixels) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < pixels) {
    const int64_t place = blockIdx.y * pixels + i;
    const float value = (float)tables[blockIdx.y * kValues + x[place]] / 255.0f;
    y[place] = from_float<T>((value - mean[blockIdx.y]) * factor[blockIdx.y]);
  }
}

size_t equalize_workspace(int64_t planes, int64_t pixels) {
  return planes * kValues * (sizeof(int32_t) + sizeof(uint8_t));
}

template <class T>
hipError_t equalize(const uint8_t* x, const float* mean, const float* factor, T* y, int64_t planes,
                    int64_t pixels, void* workspace, hipStream_t stream) {
  int32_t* counts = (int32_t*)workspace;
  uint8_t* tables = (uint8_t*)(counts + planes * kValues);
  const dim3 threads(kThreads);
  clear<<<dim3((unsigned)planes), threads, 0, stream>>>(counts, planes * kValues);
  const unsigned parts = (unsigned)((pixels + kPixelsOfBlock - 1) / kPixelsOfBlock);
  count<<<dim3(parts, (unsigned)planes), threads, 0, stream>>>(x, counts, pixels);
  make_tables<<<dim3((unsigned)planes), threads, 0, stream>>>(counts, tables, pixels);
  const unsigned blocks = (unsigned)((pixels + kThreads - 1) / kThreads);
  look_up<T><<<dim3(blocks, (unsigned)planes), threads, 0, stream>>>(x, tables, y, mean, factor,
                                                                     pixels);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t equalize_f16(const uint8_t* x, const float* mean, const float* factor,
                                   __half* y, int64_t planes, int64_t pixels, void* workspace,
                                   hipStream_t stream) {
  return equalize(x, mean, factor, y, planes, pixels, workspace, stream);
}

extern "C" size_t equalize_f16_workspace(int64_t planes, int64_t pixels) {
  return equalize_workspace(planes, pixels);
}

extern "C" hipError_t equalize_f32(const uint8_t* x, const float* mean, const float* factor,
                                   float* y, int64_t planes, int64_t pixels, void* workspace,
                                   hipStream_t stream) {
  return equalize(x, mean, factor, y, planes, pixels, workspace, stream);
}

extern "C" size_t equalize_f32_workspace(int64_t planes, int64_t pixels) {
  return equalize_workspace(planes, pixels);
}
