// The backward pass of rotary embedding and of the split into queries, keys and values.
//
// Replace the three bodies. dq is [tokens, heads, 2 * half], dk and dv are [tokens, kv_heads, 2 *
// half], cos and sin [places, half], position is [tokens] and dqkv [tokens, (heads + 2 * kv_heads)
// * 2 * half]; all are contiguous and on the device. Enqueue the work on `stream`, do not wait for
// it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t qkv_rope_backward_f32_workspace(int64_t tokens, int64_t heads,
//                                                     int64_t kv_heads, int64_t half,
//                                                     int64_t places);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t qkv_rope_backward_f32(const float* dq, const float* dk, const float* dv,
                                            const float* cos, const float* sin,
                                            const int32_t* position, float* dqkv, int64_t tokens,
                                            int64_t heads, int64_t kv_heads, int64_t half,
                                            int64_t places, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t qkv_rope_backward_f16(const __half* dq, const __half* dk, const __half* dv,
                                            const float* cos, const float* sin,
                                            const int32_t* position, __half* dqkv, int64_t tokens,
                                            int64_t heads, int64_t kv_heads, int64_t half,
                                            int64_t places, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t qkv_rope_backward_bf16(const __hip_bfloat16* dq, const __hip_bfloat16* dk,
                                             const __hip_bfloat16* dv, const float* cos,
                                             const float* sin, const int32_t* position,
                                             __hip_bfloat16* dqkv, int64_t tokens, int64_t heads,
                                             int64_t kv_heads, int64_t half, int64_t places,
                                             hipStream_t stream) {
  return hipErrorNotSupported;
}
