// The gradient of max pooling with windows of 3 x 3, two apart.
//
// Replace the three bodies. dx is [images, channels, height, width], dy and index are
// [images, channels, (height - 1) / 2 + 1, (width - 1) / 2 + 1]; all are contiguous and on the
// device. Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For
// scratch memory define, per entry,
//   extern "C" size_t max_pool_backward_f32_workspace(int64_t images, int64_t channels,
//                                                     int64_t height, int64_t width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t max_pool_backward_f32(const float* dy, const int64_t* index, float* dx,
                                            int64_t images, int64_t channels, int64_t height,
                                            int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t max_pool_backward_f16(const __half* dy, const int64_t* index, __half* dx,
                                            int64_t images, int64_t channels, int64_t height,
                                            int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t max_pool_backward_bf16(const __hip_bfloat16* dy, const int64_t* index,
                                             __hip_bfloat16* dx, int64_t images, int64_t channels,
                                             int64_t height, int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}
