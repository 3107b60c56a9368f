// Two levels of the Haar wavelet transform of images.
//
// Replace the three bodies. x is [images, channels, 4 * rows, 4 * cols], fine [images, channels,
// 3, 2 * rows, 2 * cols] and coarse [images, channels, 4, rows, cols]; all are contiguous and on
// the device. Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For
// scratch memory define, per entry,
//   extern "C" size_t haar_wavelet_bf16_workspace(int64_t images, int64_t channels, int64_t rows,
//                                                 int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t haar_wavelet_bf16(const __hip_bfloat16* x, __hip_bfloat16* fine,
                                        __hip_bfloat16* coarse, int64_t images, int64_t channels,
                                        int64_t rows, int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t haar_wavelet_f16(const __half* x, __half* fine, __half* coarse,
                                       int64_t images, int64_t channels, int64_t rows, int64_t cols,
                                       hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t haar_wavelet_f32(const float* x, float* fine, float* coarse, int64_t images,
                                       int64_t channels, int64_t rows, int64_t cols,
                                       hipStream_t stream) {
  return hipErrorNotSupported;
}
