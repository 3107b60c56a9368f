// Layer normalisation of pixels, written by shifted windows.
//
// Replace the three bodies. x is [images, rows * size, cols * size, channels], weight and bias
// [channels], and y [images, rows, cols, size, size, channels]; all are contiguous and on the
// device. Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For
// scratch memory define, per entry,
//   extern "C" size_t swin_partition_f32_workspace(int64_t images, int64_t rows, int64_t cols,
//                                                  int64_t size, int64_t shift, int64_t channels);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t swin_partition_f16(const __half* x, const __half* weight, const __half* bias,
                                         __half* y, float eps, int64_t images, int64_t rows,
                                         int64_t cols, int64_t size, int64_t shift,
                                         int64_t channels, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t swin_partition_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                          const __hip_bfloat16* bias, __hip_bfloat16* y, float eps,
                                          int64_t images, int64_t rows, int64_t cols, int64_t size,
                                          int64_t shift, int64_t channels, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t swin_partition_f32(const float* x, const float* weight, const float* bias,
                                         float* y, float eps, int64_t images, int64_t rows,
                                         int64_t cols, int64_t size, int64_t shift,
                                         int64_t channels, hipStream_t stream) {
  return hipErrorNotSupported;
}
