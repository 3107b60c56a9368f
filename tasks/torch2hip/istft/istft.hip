// Sound from the spectra of its frames.
//
// Replace the body. real and imag are [batch, 513, frames] and y is [batch, 256 * (frames - 1)];
// all are contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and
// return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t istft_f32_workspace(int64_t batch, int64_t frames);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t istft_f32(const float* real, const float* imag, float* y, int64_t batch,
                                int64_t frames, hipStream_t stream) {
  return hipErrorNotSupported;
}
