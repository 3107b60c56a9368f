// The parts of the dice and cross-entropy loss of segmentation networks.
//
// Replace the three bodies. logits is [images, classes, pixels], target [images, pixels], dice
// [images, classes] and entropy [images]; all are contiguous and on the device. Enqueue the work
// on `stream`, do not wait for it, and return hipGetLastError(). For scratch memory define, per
// entry,
//   extern "C" size_t dice_loss_f32_workspace(int64_t images, int64_t classes, int64_t pixels);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t dice_loss_f32(const float* logits, const uint8_t* target, float* dice,
                                    float* entropy, int64_t images, int64_t classes, int64_t pixels,
                                    hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t dice_loss_f16(const __half* logits, const uint8_t* target, float* dice,
                                    float* entropy, int64_t images, int64_t classes, int64_t pixels,
                                    hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t dice_loss_bf16(const __hip_bfloat16* logits, const uint8_t* target,
                                     float* dice, float* entropy, int64_t images, int64_t classes,
                                     int64_t pixels, hipStream_t stream) {
  return hipErrorNotSupported;
}
