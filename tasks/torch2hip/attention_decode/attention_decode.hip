// Attention of one query per head over ctx cached keys and values:
//   y[b, h] = sum_j w_j v[b, h, j],  w = softmax_j(q[b, h] . k[b, h, j] / sqrt(dim)).
//
// Replace the three bodies. q and y are [batch, heads, dim], k and v [batch, heads, ctx,
// dim], contiguous and on the device; enqueue the work on `stream`, do not wait for it,
// and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t attention_decode_f32_workspace(int64_t batch, int64_t heads,
//                                                    int64_t ctx, int64_t dim);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t attention_decode_f32(const float* q, const float* k, const float* v,
                                           float* y, int64_t batch, int64_t heads, int64_t ctx,
                                           int64_t dim, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t attention_decode_f16(const __half* q, const __half* k, const __half* v,
                                           __half* y, int64_t batch, int64_t heads, int64_t ctx,
                                           int64_t dim, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t attention_decode_bf16(const __hip_bfloat16* q, const __hip_bfloat16* k,
                                            const __hip_bfloat16* v, __hip_bfloat16* y,
                                            int64_t batch, int64_t heads, int64_t ctx,
                                            int64_t dim, hipStream_t stream) {
  return hipErrorNotSupported;
}
