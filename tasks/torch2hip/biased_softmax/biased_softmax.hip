// The softmax of attention's scores with a bias for each head and a mask for each sequence.
//
// Replace the three bodies. x and y are [batch, heads, rows, cols], bias [heads, rows, cols] and
// mask [batch, cols]; all are contiguous and on the device. Enqueue the work on `stream`, do not
// wait for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t biased_softmax_f32_workspace(int64_t batch, int64_t heads, int64_t rows,
//                                                  int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t biased_softmax_f32(const float* x, const float* bias, const uint8_t* mask,
                                         float* y, float scale, int64_t batch, int64_t heads,
                                         int64_t rows, int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t biased_softmax_f16(const __half* x, const __half* bias, const uint8_t* mask,
                                         __half* y, float scale, int64_t batch, int64_t heads,
                                         int64_t rows, int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t biased_softmax_bf16(const __hip_bfloat16* x, const __hip_bfloat16* bias,
                                          const uint8_t* mask, __hip_bfloat16* y, float scale,
                                          int64_t batch, int64_t heads, int64_t rows, int64_t cols,
                                          hipStream_t stream) {
  return hipErrorNotSupported;
}
