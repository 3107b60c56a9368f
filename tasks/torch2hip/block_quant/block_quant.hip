// Quantisation to int8 by blocks of 128 x 128, with the transpose.
//
// Replace the three bodies. x and q are [128 * down, 128 * across], qt is the transpose of q and
// scale [down, across]; all are contiguous and on the device. Enqueue the work on `stream`, do
// not wait for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t block_quant_f32_workspace(int64_t down, int64_t across);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>


extern "C" hipError_t block_quant_f32(const float* x, int8_t* q, int8_t* qt, float* scale,
                                      int64_t down, int64_t across, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t block_quant_f16(const __half* x, int8_t* q, int8_t* qt, float* scale,
                                      int64_t down, int64_t across, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t block_quant_bf16(const __hip_bfloat16* x, int8_t* q, int8_t* qt, float* scale,
                                       int64_t down, int64_t across, hipStream_t stream) {
  return hipErrorNotSupported;
}
