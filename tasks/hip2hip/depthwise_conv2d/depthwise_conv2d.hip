// A depthwise convolution, channels last: one thread for each element of y, neighbouring threads
// on neighbouring channels.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }
__device__ float to_float(float v) { return v; }

template <class T> __device__ T from_float(float v);
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}
template <> __device__ float from_float<float>(float v) { return v; }

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void convolve(const T* x, const T* weight, const T* bias, T* y, int64_t total,
                         int64_t height, int64_t width, int64_t channels, int64_t size) {
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t channel = i % channels;
    const int64_t col = i / channels % width;
    const int64_t row = i / (channels * width) % height;
    const int64_t image = i / (channels * width * height);
    float sum = to_float(bias[channel]);
    for (int64_t down = 0; down < size; ++down) {
      const int64_t r = row + down - size / 2;
      if (r < 0 || r >= height) {
        continue;
      }
      for (int64_t right = 0; right < size; ++right) {
        const int64_t c = col + right - size / 2;
        if (c >= 0 && c < width) {
          const float value = to_float(x[((image * height + r) * width + c) * channels + channel]);
          sum += value * to_float(weight[(down * size + right) * channels + channel]);
        }
      }
    }
    y[i] = from_float<T>(sum);
  }
}

template <class T>
hipError_t depthwise_conv2d(const T* x, const T* weight, const T* bias, T* y, int64_t images,
                            int64_t height, int64_t width, int64_t channels, int64_t size,
                            hipStream_t stream) {
  const int64_t total = images * height * width * channels;
  const int64_t wanted = (total + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  convolve<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, weight, bias, y, total,
                                                                     height, width, channels, size);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t depthwise_conv2d_f16(const __half* x, const __half* weight,
                                           const __half* bias, __half* y, int64_t images,
                                           int64_t height, int64_t width, int64_t channels,
                                           int64_t size, hipStream_t stream) {
  return depthwise_conv2d(x, weight, bias, y, images, height, width, channels, size, stream);
}

extern "C" hipError_t depthwise_conv2d_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                            const __hip_bfloat16* bias, __hip_bfloat16* y,
                                            int64_t images, int64_t height, int64_t width,
                                            int64_t channels, int64_t size, hipStream_t stream) {
  return depthwise_conv2d(x, weight, bias, y, images, height, width, channels, size, stream);
}

extern "C" hipError_t depthwise_conv2d_f32(const float* x, const float* weight, const float* bias,
                                           float* y, int64_t images, int64_t height, int64_t width,
                                           int64_t channels, int64_t size, hipStream_t stream) {
  return depthwise_conv2d(x, weight, bias, y, images, height, width, channels, size, stream);
}
