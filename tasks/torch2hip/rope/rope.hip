// Rotary position embedding, rotate-half convention: with d = 2 * half,
//   y[b, h, s, j]        = x[b, h, s, j] cos[s, j] - x[b, h, s, j + half] sin[s, j]
//   y[b, h, s, j + half] = x[b, h, s, j + half] cos[s, j] + x[b, h, s, j] sin[s, j]
//
// Replace the three bodies. Arrays are contiguous and on the device; enqueue the work on
// `stream`, do not wait for it, and return hipGetLastError(). For scratch memory define,
// per entry,
//   extern "C" size_t rope_f32_workspace(int64_t batch, int64_t heads, int64_t seq,
//                                        int64_t half);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t rope_f32(const float* x, const float* cos, const float* sin, float* y,
                               int64_t batch, int64_t heads, int64_t seq, int64_t half,
                               hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t rope_f16(const __half* x, const float* cos, const float* sin, __half* y,
                               int64_t batch, int64_t heads, int64_t seq, int64_t half,
                               hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t rope_bf16(const __hip_bfloat16* x, const float* cos, const float* sin,
                                __hip_bfloat16* y, int64_t batch, int64_t heads, int64_t seq,
                                int64_t half, hipStream_t stream) {
  return hipErrorNotSupported;
}
