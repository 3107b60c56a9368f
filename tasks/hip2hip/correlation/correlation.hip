// The cost volume of two maps: one thread for each element of y, which walks over the channels.
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

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void correlate(const T* a, const T* b, T* y, int64_t total, int64_t channels,
                          int64_t height, int64_t width, int64_t reach) {
  const int64_t across = 2 * reach + 1;
  const int64_t pixels = height * width;
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t shift = i % (across * across);
    const int64_t col = i / (across * across) % width;
    const int64_t row = i / (across * across * width) % height;
    const int64_t image = i / (across * across * pixels);
    const int64_t r = row + shift / across - reach;
    const int64_t c = col + shift % across - reach;
    float sum = 0.0f;
    if (r >= 0 && r < height && c >= 0 && c < width) {
      const T* left = a + image * channels * pixels + row * width + col;
      const T* right = b + image * channels * pixels + r * width + c;
      for (int64_t channel = 0; channel < channels; ++channel) {
        sum += to_float(left[channel * pixels]) * to_float(right[channel * pixels]);
      }
    }
    const float mean = sum / (float)channels;
    y[i] = from_float<T>(mean > 0.0f ? mean : 0.1f * mean);
  }
}

template <class T>
hipError_t correlation(const T* a, const T* b, T* y, int64_t images, int64_t channels,
                       int64_t height, int64_t width, int64_t reach, hipStream_t stream) {
  const int64_t total = images * (2 * reach + 1) * (2 * reach + 1) * height * width;
  const int64_t wanted = (total + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  correlate<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(a, b, y, total, channels,
                                                                      height, width, reach);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t correlation_f32(const float* a, const float* b, float* y, int64_t images,
                                      int64_t channels, int64_t height, int64_t width,
                                      int64_t reach, hipStream_t stream) {
  return correlation(a, b, y, images, channels, height, width, reach, stream);
}

extern "C" hipError_t correlation_f16(const __half* a, const __half* b, __half* y, int64_t images,
                                      int64_t channels, int64_t height, int64_t width,
                                      int64_t reach, hipStream_t stream) {
  return correlation(a, b, y, images, channels, height, width, reach, stream);
}

extern "C" hipError_t correlation_bf16(const __hip_bfloat16* a, const __hip_bfloat16* b,
                                       __hip_bfloat16* y, int64_t images, int64_t channels,
                                       int64_t height, int64_t width, int64_t reach,
                                       hipStream_t stream) {
  return correlation(a, b, y, images, channels, height, width, reach, stream);
}
