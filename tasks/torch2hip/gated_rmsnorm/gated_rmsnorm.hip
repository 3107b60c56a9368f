// A gate, and RMS normalisation of groups of columns.
//
// Replace the three bodies. x, z and y are [rows, groups * size], weight [groups * size]; all are
// contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and return
// hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t gated_rmsnorm_f32_workspace(int64_t rows, int64_t groups, int64_t size);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t gated_rmsnorm_bf16(const __hip_bfloat16* x, const __hip_bfloat16* z,
                                         const __hip_bfloat16* weight, __hip_bfloat16* y, float eps,
                                         int64_t rows, int64_t groups, int64_t size,
                                         hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t gated_rmsnorm_f16(const __half* x, const __half* z, const __half* weight,
                                        __half* y, float eps, int64_t rows, int64_t groups,
                                        int64_t size, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t gated_rmsnorm_f32(const float* x, const float* z, const float* weight,
                                        float* y, float eps, int64_t rows, int64_t groups,
                                        int64_t size, hipStream_t stream) {
  return hipErrorNotSupported;
}
