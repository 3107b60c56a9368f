// Gradients of batch normalisation followed by ReLU.
//
// Replace the three bodies. x, dy and dx are [images, channels, height, width], all other tensors
// [channels]; all are contiguous and on the device. Enqueue the work on `stream`, do not wait for
// it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t batch_norm_backward_f32_workspace(int64_t images, int64_t channels,
//                                                       int64_t height, int64_t width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t batch_norm_backward_f32(const float* x, const float* weight,
                                              const float* bias, const float* mean,
                                              const float* rstd, const float* dy, float* dx,
                                              float* dweight, float* dbias, int64_t images,
                                              int64_t channels, int64_t height, int64_t width,
                                              hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t batch_norm_backward_f16(const __half* x, const float* weight,
                                              const float* bias, const float* mean,
                                              const float* rstd, const __half* dy, __half* dx,
                                              float* dweight, float* dbias, int64_t images,
                                              int64_t channels, int64_t height, int64_t width,
                                              hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t batch_norm_backward_bf16(const __hip_bfloat16* x, const float* weight,
                                               const float* bias, const float* mean,
                                               const float* rstd, const __hip_bfloat16* dy,
                                               __hip_bfloat16* dx, float* dweight, float* dbias,
                                               int64_t images, int64_t channels, int64_t height,
                                               int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}
