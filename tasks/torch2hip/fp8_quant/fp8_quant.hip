// Quantisation to 8-bit floats with a scale for each row.
//
// Replace the three bodies. x and q are [rows, cols], scale is [rows]; all are contiguous and on
// the device. bias is 7 or 8, and says which format q has. Enqueue the work on `stream`, do not
// wait for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t fp8_quant_bf16_workspace(int64_t rows, int64_t cols, int64_t bias);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t fp8_quant_bf16(const __hip_bfloat16* x, uint8_t* q, float* scale,
                                     int64_t rows, int64_t cols, int64_t bias, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t fp8_quant_f16(const __half* x, uint8_t* q, float* scale, int64_t rows,
                                    int64_t cols, int64_t bias, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t fp8_quant_f32(const float* x, uint8_t* q, float* scale, int64_t rows,
                                    int64_t cols, int64_t bias, hipStream_t stream) {
  return hipErrorNotSupported;
}
