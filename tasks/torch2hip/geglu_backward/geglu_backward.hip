// Gradients of GEGLU, tanh form, and its result again.
//
// Replace the three bodies. All tensors are [rows, cols], contiguous and on the device; enqueue
// the work on `stream`, do not wait for it, and return hipGetLastError(). For scratch memory
// define, per entry,
//   extern "C" size_t geglu_backward_f32_workspace(int64_t rows, int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>


extern "C" hipError_t geglu_backward_f32(const float* gate, const float* value, const float* dy,
                                         float* dgate, float* dvalue, float* h, int64_t rows,
                                         int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t geglu_backward_f16(const __half* gate, const __half* value, const __half* dy,
                                         __half* dgate, __half* dvalue, __half* h, int64_t rows,
                                         int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t geglu_backward_bf16(const __hip_bfloat16* gate, const __hip_bfloat16* value,
                                          const __hip_bfloat16* dy, __hip_bfloat16* dgate,
                                          __hip_bfloat16* dvalue, __hip_bfloat16* h, int64_t rows,
                                          int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
