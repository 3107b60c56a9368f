// A transposed convolution with filters of 4 x 4 that doubles height and width, with bias and ReLU.
//
// Replace the three bodies. x is [images, ins, height, width], weight [ins, outs, 4, 4], bias
// [outs] and y [images, outs, 2 * height, 2 * width]; all are contiguous and on the device.
// Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For scratch
// memory define, per entry,
//   extern "C" size_t conv_transpose2d_f32_workspace(int64_t images, int64_t ins, int64_t outs,
//                                                    int64_t height, int64_t width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t conv_transpose2d_f32(const float* x, const float* weight, const float* bias,
                                           float* y, int64_t images, int64_t ins, int64_t outs,
                                           int64_t height, int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t conv_transpose2d_f16(const __half* x, const __half* weight,
                                           const __half* bias, __half* y, int64_t images,
                                           int64_t ins, int64_t outs, int64_t height, int64_t width,
                                           hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t conv_transpose2d_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                            const __hip_bfloat16* bias, __hip_bfloat16* y,
                                            int64_t images, int64_t ins, int64_t outs,
                                            int64_t height, int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}
