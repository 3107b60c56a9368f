// The map of structural similarity of two images.
//
// Replace the two bodies. a, b and y are [planes, height, width] and window is [11]; all are
// contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and return
// hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t ssim_f32_workspace(int64_t planes, int64_t height, int64_t width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t ssim_f32(const float* a, const float* b, const float* window, float* y,
                               int64_t planes, int64_t height, int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t ssim_f16(const __half* a, const __half* b, const float* window, __half* y,
                               int64_t planes, int64_t height, int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}
