// Quantisation to int8 with a zero point for each column and group of 128 rows.
//
// Replace the three bodies. x and q are [128 * groups, cols], step and zero [groups, cols]; all
// are contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and return
// hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t channel_quant_bf16_workspace(int64_t groups, int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t channel_quant_bf16(const __hip_bfloat16* x, uint8_t* q, float* step,
                                         __hip_bfloat16* zero, int64_t groups, int64_t cols,
                                         hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t channel_quant_f16(const __half* x, uint8_t* q, float* step, __half* zero,
                                        int64_t groups, int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t channel_quant_f32(const float* x, uint8_t* q, float* step, float* zero,
                                        int64_t groups, int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
