// One step of the optimiser Lion, with its gradient clipped by the norm.
//
// Replace the three bodies. limit is [1], all other tensors [n]; all are contiguous and on the
// device. Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For
// scratch memory define, per entry,
//   extern "C" size_t lion_f32_workspace(int64_t n);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t lion_f32(const float* grad, const float* param, const float* m,
                               const float* limit, float* weight, float* param_new, float* m_new,
                               float lr, float beta1, float beta2, float decay, int64_t n,
                               hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t lion_f16(const __half* grad, const float* param, const float* m,
                               const float* limit, __half* weight, float* param_new, float* m_new,
                               float lr, float beta1, float beta2, float decay, int64_t n,
                               hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t lion_bf16(const __hip_bfloat16* grad, const float* param, const float* m,
                                const float* limit, __hip_bfloat16* weight, float* param_new,
                                float* m_new, float lr, float beta1, float beta2, float decay,
                                int64_t n, hipStream_t stream) {
  return hipErrorNotSupported;
}
