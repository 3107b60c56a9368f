// Frames in NV12 to normalised red, green and blue.
//
// Replace the three bodies. luma is [frames, 2 * rows, 2 * cols], chroma [frames, rows, 2 * cols],
// mean and factor are [3], and y is [frames, 3, 2 * rows, 2 * cols]; all are contiguous and on the
// device. Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For
// scratch memory define, per entry,
//   extern "C" size_t nv12_to_rgb_f16_workspace(int64_t frames, int64_t rows, int64_t cols);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t nv12_to_rgb_f16(const uint8_t* luma, const uint8_t* chroma,
                                      const __half* mean, const __half* factor, __half* y,
                                      int64_t frames, int64_t rows, int64_t cols,
                                      hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t nv12_to_rgb_bf16(const uint8_t* luma, const uint8_t* chroma,
                                       const __hip_bfloat16* mean, const __hip_bfloat16* factor,
                                       __hip_bfloat16* y, int64_t frames, int64_t rows,
                                       int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t nv12_to_rgb_f32(const uint8_t* luma, const uint8_t* chroma, const float* mean,
                                      const float* factor, float* y, int64_t frames, int64_t rows,
                                      int64_t cols, hipStream_t stream) {
  return hipErrorNotSupported;
}
