// A gated residual, and adaptive layer normalisation after it.
//
// Replace the three bodies. x, branch, sum and y are [batch, seq, cols], the settings
// [batch, cols]; all are contiguous and on the device. Enqueue the work on `stream`, do not wait
// for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t adaln_modulate_f32_workspace(int64_t batch, int64_t seq, int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t adaln_modulate_bf16(const __hip_bfloat16* x, const __hip_bfloat16* branch,
                                          const __hip_bfloat16* gate, const __hip_bfloat16* shift,
                                          const __hip_bfloat16* scale, __hip_bfloat16* sum,
                                          __hip_bfloat16* y, float eps, int64_t batch, int64_t seq,
                                          int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t adaln_modulate_f16(const __half* x, const __half* branch, const __half* gate,
                                         const __half* shift, const __half* scale, __half* sum,
                                         __half* y, float eps, int64_t batch, int64_t seq,
                                         int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t adaln_modulate_f32(const float* x, const float* branch, const float* gate,
                                         const float* shift, const float* scale, float* sum,
                                         float* y, float eps, int64_t batch, int64_t seq,
                                         int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
