// The k largest elements of every row, sorted descending, with their columns.
//
// Replace the three bodies. x is [rows, cols], values [rows, k] and indices [rows, k],
// contiguous and on the device, with k <= 64 and k <= cols; enqueue the work on `stream`,
// do not wait for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t topk_f32_workspace(int64_t rows, int64_t cols, int64_t k);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t topk_f32(const float* x, float* values, int64_t* indices, int64_t rows,
                               int64_t cols, int64_t k, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t topk_f16(const __half* x, __half* values, int64_t* indices, int64_t rows,
                               int64_t cols, int64_t k, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t topk_bf16(const __hip_bfloat16* x, __hip_bfloat16* values,
                                int64_t* indices, int64_t rows, int64_t cols, int64_t k,
                                hipStream_t stream) {
  return hipErrorNotSupported;
}
