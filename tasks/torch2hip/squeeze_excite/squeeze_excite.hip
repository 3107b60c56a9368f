// Squeeze and excitation of the channels of images.
//
// Replace the three bodies. x and y are [images, channels, height, width], w1 [hidden, channels],
// b1 [hidden], w2 [channels, hidden] and b2 [channels]; all are contiguous and on the device.
// Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For scratch
// memory define, per entry,
//   extern "C" size_t squeeze_excite_f32_workspace(int64_t images, int64_t channels,
//                                                  int64_t height, int64_t width, int64_t hidden);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t squeeze_excite_f32(const float* x, const float* w1, const float* b1,
                                         const float* w2, const float* b2, float* y, int64_t images,
                                         int64_t channels, int64_t height, int64_t width,
                                         int64_t hidden, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t squeeze_excite_f16(const __half* x, const __half* w1, const __half* b1,
                                         const __half* w2, const __half* b2, __half* y,
                                         int64_t images, int64_t channels, int64_t height,
                                         int64_t width, int64_t hidden, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t squeeze_excite_bf16(const __hip_bfloat16* x, const __hip_bfloat16* w1,
                                          const __hip_bfloat16* b1, const __hip_bfloat16* w2,
                                          const __hip_bfloat16* b2, __hip_bfloat16* y,
                                          int64_t images, int64_t channels, int64_t height,
                                          int64_t width, int64_t hidden, hipStream_t stream) {
  return hipErrorNotSupported;
}
