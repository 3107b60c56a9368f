// Feature maps moved back along an optical flow.
//
// Replace the three bodies. x and y are [images, channels, height, width] and flow is [images, 2,
// height, width]; all are contiguous and on the device. Enqueue the work on `stream`, do not wait
// for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t flow_warp_f32_workspace(int64_t images, int64_t channels, int64_t height,
//                                             int64_t width);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t flow_warp_f32(const float* x, const float* flow, float* y, int64_t images,
                                    int64_t channels, int64_t height, int64_t width,
                                    hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t flow_warp_f16(const __half* x, const float* flow, __half* y, int64_t images,
                                    int64_t channels, int64_t height, int64_t width,
                                    hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t flow_warp_bf16(const __hip_bfloat16* x, const float* flow, __hip_bfloat16* y,
                                     int64_t images, int64_t channels, int64_t height,
                                     int64_t width, hipStream_t stream) {
  return hipErrorNotSupported;
}
