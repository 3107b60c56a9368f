// One step of AdamW with moments in 8 bits, by blocks of 256 parameters.
//
// Replace the three bodies. The scales are [blocks], all other tensors [256 * blocks]; all are
// contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and return
// hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t adamw_8bit_f32_workspace(int64_t blocks);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t adamw_8bit_f32(const float* param, const float* grad, const int8_t* m_q,
                                     const float* m_scale, const uint8_t* r_q, const float* r_scale,
                                     float* weight, float* param_new, int8_t* m_q_new,
                                     float* m_scale_new, uint8_t* r_q_new, float* r_scale_new,
                                     float lr, float beta1, float beta2, float eps, float decay,
                                     float c1, float c2, int64_t blocks, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t adamw_8bit_f16(const float* param, const __half* grad, const int8_t* m_q,
                                     const float* m_scale, const uint8_t* r_q, const float* r_scale,
                                     __half* weight, float* param_new, int8_t* m_q_new,
                                     float* m_scale_new, uint8_t* r_q_new, float* r_scale_new,
                                     float lr, float beta1, float beta2, float eps, float decay,
                                     float c1, float c2, int64_t blocks, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t adamw_8bit_bf16(const float* param, const __hip_bfloat16* grad,
                                      const int8_t* m_q, const float* m_scale, const uint8_t* r_q,
                                      const float* r_scale, __hip_bfloat16* weight,
                                      float* param_new, int8_t* m_q_new, float* m_scale_new,
                                      uint8_t* r_q_new, float* r_scale_new, float lr, float beta1,
                                      float beta2, float eps, float decay, float c1, float c2,
                                      int64_t blocks, hipStream_t stream) {
  return hipErrorNotSupported;
}
