// The backward pass of one step of an LSTM's elementwise part.
//
// Replace the three bodies. gates and dgates are [rows, 4 * hidden], dbias is [4 * hidden], and
// all others are [rows, hidden]; all are contiguous and on the device. Enqueue the work on
// `stream`, do not wait for it, and return hipGetLastError(). For scratch memory define, per
// entry,
//   extern "C" size_t lstm_cell_backward_f32_workspace(int64_t rows, int64_t hidden);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t lstm_cell_backward_f32(const float* gates, const float* c_old,
                                             const float* dh, const float* dc_next, float* dgates,
                                             float* dc_old, float* dbias, int64_t rows,
                                             int64_t hidden, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t lstm_cell_backward_f16(const __half* gates, const float* c_old,
                                             const __half* dh, const float* dc_next, __half* dgates,
                                             float* dc_old, float* dbias, int64_t rows,
                                             int64_t hidden, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t lstm_cell_backward_bf16(const __hip_bfloat16* gates, const float* c_old,
                                              const __hip_bfloat16* dh, const float* dc_next,
                                              __hip_bfloat16* dgates, float* dc_old, float* dbias,
                                              int64_t rows, int64_t hidden, hipStream_t stream) {
  return hipErrorNotSupported;
}
