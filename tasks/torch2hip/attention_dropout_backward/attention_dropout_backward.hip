// The gradient of attention's scores through dropout, softmax and scale.
//
// Replace the three bodies. All tensors are [rows, cols], contiguous and on the device. Enqueue
// the work on `stream`, do not wait for it, and return hipGetLastError(). For scratch memory
// define, per entry,
//   extern "C" size_t attention_dropout_backward_f32_workspace(int64_t rows, int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t attention_dropout_backward_f32(const float* p, const uint8_t* kept,
                                                     const float* dz, float* dx, float scale,
                                                     float drop, int64_t rows, int64_t cols,
                                                     hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t attention_dropout_backward_f16(const __half* p, const uint8_t* kept,
                                                     const __half* dz, __half* dx, float scale,
                                                     float drop, int64_t rows, int64_t cols,
                                                     hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t attention_dropout_backward_bf16(const __hip_bfloat16* p, const uint8_t* kept,
                                                      const __hip_bfloat16* dz, __hip_bfloat16* dx,
                                                      float scale, float drop, int64_t rows,
                                                      int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
