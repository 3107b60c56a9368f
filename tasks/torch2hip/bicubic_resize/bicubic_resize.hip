// Bicubic interpolation of images to another size.
//
// Replace the three bodies. x is [images, channels, height, width] and y [images, channels,
// new_height, new_width]; both are contiguous and on the device. Enqueue the work on `stream`, do
// not wait for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t bicubic_resize_f32_workspace(int64_t images, int64_t channels,
//                                                  int64_t height, int64_t width,
//                                                  int64_t new_height, int64_t new_width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t bicubic_resize_f32(const float* x, float* y, int64_t images, int64_t channels,
                                         int64_t height, int64_t width, int64_t new_height,
                                         int64_t new_width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t bicubic_resize_f16(const __half* x, __half* y, int64_t images,
                                         int64_t channels, int64_t height, int64_t width,
                                         int64_t new_height, int64_t new_width,
                                         hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t bicubic_resize_bf16(const __hip_bfloat16* x, __hip_bfloat16* y,
                                          int64_t images, int64_t channels, int64_t height,
                                          int64_t width, int64_t new_height, int64_t new_width,
                                          hipStream_t stream) {
  return hipErrorNotSupported;
}
