// GELU (tanh form): y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
//
// Replace the three bodies. x and y are device pointers to rows * cols contiguous
// elements; enqueue the work on `stream`, do not wait for it, and return
// hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t gelu_f32_workspace(int64_t rows, int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t gelu_f32(const float* x, float* y, int64_t rows, int64_t cols,
                               hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t gelu_f16(const __half* x, __half* y, int64_t rows, int64_t cols,
                               hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t gelu_bf16(const __hip_bfloat16* x, __hip_bfloat16* y, int64_t rows,
                                int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
