// The gradient of an embedding's table.
//
// Replace the three bodies. dy is [tokens, cols], token [tokens] and dweight [vocab, cols]; all
// are contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and return
// hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t embedding_backward_f32_workspace(int64_t tokens, int64_t vocab,
//                                                      int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t embedding_backward_f32(const float* dy, const int64_t* token, float* dweight,
                                             int64_t padding, int64_t tokens, int64_t vocab,
                                             int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t embedding_backward_f16(const __half* dy, const int64_t* token, float* dweight,
                                             int64_t padding, int64_t tokens, int64_t vocab,
                                             int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t embedding_backward_bf16(const __hip_bfloat16* dy, const int64_t* token,
                                              float* dweight, int64_t padding, int64_t tokens,
                                              int64_t vocab, int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
