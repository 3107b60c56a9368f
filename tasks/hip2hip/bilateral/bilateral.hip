// The joint bilateral filter: one thread for each pixel, which reads its window from global memory.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

constexpr int kAcross = 32;
constexpr int kDown = 8;

template <class T>
__global__ void filter(const T* value, const T* guide, T* y, float alike, int64_t height,
                       int64_t width, int64_t reach) {
  const int64_t col = (int64_t)blockIdx.x * kAcross + threadIdx.x;
  const int64_t row = (int64_t)blockIdx.y * kDown + threadIdx.y;
  if (row >= height || col >= width) {
    return;
  }
  const int64_t pixels = height * width;
  const int64_t own = row * width + col;
  const T* values = value + blockIdx.z * pixels;
  const T* colours = guide + blockIdx.z * 3 * pixels;
  const float near = 4.5f / (float)(reach * reach);
  float sum = 0.0f;
  float weights = 0.0f;
  for (int64_t a = row - reach; a <= row + reach; ++a) {
    for (int64_t b = col - reach; b <= col + reach; ++b) {
      if (a < 0 || a >= height || b < 0 || b >= width) {
        continue;
      }
      const int64_t other = a * width + b;
      float unlike = 0.0f;
      for (int channel = 0; channel < 3; ++channel) {
        const float apart =
            to_float(colours[channel * pixels + other]) - to_float(colours[channel * pixels + own]);
        unlike += apart * apart;
      }
      const float away = (float)((a - row) * (a - row) + (b - col) * (b - col));
      const float weight = expf(-away * near - unlike * alike);
      sum += weight * to_float(values[other]);
      weights += weight;
    }
  }
  y[blockIdx.z * pixels + own] = from_float<T>(sum / weights);
}

template <class T>
hipError_t bilateral(const T* value, const T* guide, T* y, float alike, int64_t images,
                     int64_t height, int64_t width, int64_t reach, hipStream_t stream) {
  const dim3 blocks((unsigned)((width + kAcross - 1) / kAcross),
                    (unsigned)((height + kDown - 1) / kDown), (unsigned)images);
  filter<T><<<blocks, dim3(kAcross, kDown), 0, stream>>>(value, guide, y, alike, height, width,
                                                         reach);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t bilateral_f32(const float* value, const float* guide, float* y, float alike,
                                    int64_t images, int64_t height, int64_t width, int64_t reach,
                                    hipStream_t stream) {
  return bilateral(value, guide, y, alike, images, height, width, reach, stream);
}

extern "C" hipError_t bilateral_f16(const __half* value, const __half* guide, __half* y,
                                    float alike, int64_t images, int64_t height, int64_t width,
                                    int64_t reach, hipStream_t stream) {
  return bilateral(value, guide, y, alike, images, height, width, reach, stream);
}
