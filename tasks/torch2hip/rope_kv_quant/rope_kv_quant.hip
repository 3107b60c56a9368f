// Keys and values on their way into an int8 cache: rotation and quantisation.
//
// Replace the three bodies. k, v, k_q and v_q are [tokens, heads, 2 * half], cos and sin [tokens,
// half], k_scale and v_scale [tokens, heads]; all are contiguous and on the device. Enqueue the
// work on `stream`, do not wait for it, and return hipGetLastError(). For scratch memory define,
// per entry,
//   extern "C" size_t rope_kv_quant_bf16_workspace(int64_t tokens, int64_t heads, int64_t half);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t rope_kv_quant_bf16(const __hip_bfloat16* k, const __hip_bfloat16* v,
                                         const float* cos, const float* sin, int8_t* k_q,
                                         float* k_scale, int8_t* v_q, float* v_scale,
                                         int64_t tokens, int64_t heads, int64_t half,
                                         hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t rope_kv_quant_f16(const __half* k, const __half* v, const float* cos,
                                        const float* sin, int8_t* k_q, float* k_scale, int8_t* v_q,
                                        float* v_scale, int64_t tokens, int64_t heads, int64_t half,
                                        hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t rope_kv_quant_f32(const float* k, const float* v, const float* cos,
                                        const float* sin, int8_t* k_q, float* k_scale, int8_t* v_q,
                                        float* v_scale, int64_t tokens, int64_t heads, int64_t half,
                                        hipStream_t stream) {
  return hipErrorNotSupported;
}
