// Batch normalisation with known statistics, ReLU and max pooling with windows of 3 x 3, two apart.
//
// Replace the three bodies. x is [images, channels, height, width], scale and shift are
// [channels], and y is [images, channels, (height - 1) / 2 + 1, (width - 1) / 2 + 1]; all are
// contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and return
// hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t bn_relu_maxpool_f32_workspace(int64_t images, int64_t channels,
//                                                   int64_t height, int64_t width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t bn_relu_maxpool_f32(const float* x, const float* scale, const float* shift,
                                          float* y, int64_t images, int64_t channels,
                                          int64_t height, int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t bn_relu_maxpool_f16(const __half* x, const float* scale, const float* shift,
                                          __half* y, int64_t images, int64_t channels,
                                          int64_t height, int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t bn_relu_maxpool_bf16(const __hip_bfloat16* x, const float* scale,
                                           const float* shift, __hip_bfloat16* y, int64_t images,
                                           int64_t channels, int64_t height, int64_t width,
                                           hipStream_t stream) {
  return hipErrorNotSupported;
}
