// The backward pass of a residual sum and layer normalisation.
//
// Replace the three bodies. h, dy, dh and dx are [rows, cols], weight, dweight and dbias [cols],
// mean and rstd [rows]; all are contiguous and on the device. Enqueue the work on `stream`, do not
// wait for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t add_layernorm_backward_f32_workspace(int64_t rows, int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t add_layernorm_backward_f32(const float* h, const float* weight,
                                                 const float* mean, const float* rstd,
                                                 const float* dy, const float* dh, float* dx,
                                                 float* dweight, float* dbias, int64_t rows,
                                                 int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t add_layernorm_backward_f16(const __half* h, const __half* weight,
                                                 const float* mean, const float* rstd,
                                                 const __half* dy, const __half* dh, __half* dx,
                                                 float* dweight, float* dbias, int64_t rows,
                                                 int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t add_layernorm_backward_bf16(const __hip_bfloat16* h,
                                                  const __hip_bfloat16* weight, const float* mean,
                                                  const float* rstd, const __hip_bfloat16* dy,
                                                  const __hip_bfloat16* dh, __hip_bfloat16* dx,
                                                  float* dweight, float* dbias, int64_t rows,
                                                  int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
