// Features of regions: one thread for each element of y, which takes its four samples.
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
__device__ float sample(const T* plane, float row, float col, int64_t height, int64_t width) {
  if (!(row >= -1.0f && row <= (float)height && col >= -1.0f && col <= (float)width)) {
    return 0.0f;
  }
  const float r = fminf(fmaxf(row, 0.0f), (float)(height - 1));
  const float c = fminf(fmaxf(col, 0.0f), (float)(width - 1));
  const int64_t top = (int64_t)r;
  const int64_t left = (int64_t)c;
  const int64_t bottom = top + 1 < height ? top + 1 : top;
  const int64_t right = left + 1 < width ? left + 1 : left;
  const float down = r - (float)top;
  const float across = c - (float)left;
  const float above = (1.0f - across) * to_float(plane[top * width + left]) +
                      across * to_float(plane[top * width + right]);
  const float below = (1.0f - across) * to_float(plane[bottom * width + left]) +
                      across * to_float(plane[bottom * width + right]);
  return (1.0f - down) * above + down * below;
}

template <class T>
__global__ void align(const T* x, const float* box, const int32_t* image, T* y, float scale,
                      int64_t total, int64_t channels, int64_t height, int64_t width,
                      int64_t size) {
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t col = i % size;
    const int64_t row = i / size % size;
    const int64_t channel = i / (size * size) % channels;
    const int64_t region = i / (size * size * channels);
    const float left = scale * box[region * 4] - 0.5f;
    const float top = scale * box[region * 4 + 1] - 0.5f;
    const float wide = (scale * box[region * 4 + 2] - 0.5f - left) / (float)size;
    const float high = (scale * box[region * 4 + 3] - 0.5f - top) / (float)size;
    const T* plane = x + (image[region] * channels + channel) * height * width;
    float sum = 0.0f;
    for (int down = 0; down < 2; ++down) {
      for (int across = 0; across < 2; ++across) {
        const float r = top + high * ((float)row + 0.25f + 0.5f * (float)down);
        const float c = left + wide * ((float)col + 0.25f + 0.5f * (float)across);
        sum += sample(plane, r, c, height, width);
      }
    }
    y[i] = from_float<T>(0.25f * sum);
  }
}

template <class T>
hipError_t roi_align(const T* x, const float* box, const int32_t* image, T* y, float scale,
                     int64_t images, int64_t channels, int64_t height, int64_t width,
                     int64_t regions, int64_t size, hipStream_t stream) {
  const int64_t total = regions * channels * size * size;
  const int64_t wanted = (total + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  align<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, box, image, y, scale, total,
                                                                  channels, height, width, size);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t roi_align_f32(const float* x, const float* box, const int32_t* image,
                                    float* y, float scale, int64_t images, int64_t channels,
                                    int64_t height, int64_t width, int64_t regions, int64_t size,
                                    hipStream_t stream) {
  return roi_align(x, box, image, y, scale, images, channels, height, width, regions, size, stream);
}

extern "C" hipError_t roi_align_f16(const __half* x, const float* box, const int32_t* image,
                                    __half* y, float scale, int64_t images, int64_t channels,
                                    int64_t height, int64_t width, int64_t regions, int64_t size,
                                    hipStream_t stream) {
  return roi_align(x, box, image, y, scale, images, channels, height, width, regions, size, stream);
}

extern "C" hipError_t roi_align_bf16(const __hip_bfloat16* x, const float* box,
                                     const int32_t* image, __hip_bfloat16* y, float scale,
                                     int64_t images, int64_t channels, int64_t height,
                                     int64_t width, int64_t regions, int64_t size,
                                     hipStream_t stream) {
  return roi_align(x, box, image, y, scale, images, channels, height, width, regions, size, stream);
}
