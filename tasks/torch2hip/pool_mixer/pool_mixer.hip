// The mixing of tokens by average pooling, with its residual sum and layer scale.
//
// Replace the three bodies. n, x and y are [images, channels, height, width] and gamma is
// [channels]; all are contiguous and on the device. Enqueue the work on `stream`, do not wait for
// it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t pool_mixer_f32_workspace(int64_t images, int64_t channels, int64_t height,
//                                              int64_t width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t pool_mixer_f32(const float* n, const float* x, const float* gamma, float* y,
                                     int64_t images, int64_t channels, int64_t height,
                                     int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t pool_mixer_f16(const __half* n, const __half* x, const float* gamma,
                                     __half* y, int64_t images, int64_t channels, int64_t height,
                                     int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t pool_mixer_bf16(const __hip_bfloat16* n, const __hip_bfloat16* x,
                                      const float* gamma, __hip_bfloat16* y, int64_t images,
                                      int64_t channels, int64_t height, int64_t width,
                                      hipStream_t stream) {
  return hipErrorNotSupported;
}
