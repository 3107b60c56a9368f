// Energies of mel bands on a logarithmic scale.
//
// Replace the body. spectrum is [batch, bins, frames, 2], bank [mels, bins] and y
// [batch, mels, frames]; all are contiguous and on the device. Enqueue the work on `stream`, do not
// wait for it, and return hipGetLastError(). For scratch memory define
//   extern "C" size_t log_mel_f32_workspace(int64_t batch, int64_t bins, int64_t frames,
//                                           int64_t mels);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t log_mel_f32(const float* spectrum, const float* bank, float* y, int64_t batch,
                                  int64_t bins, int64_t frames, int64_t mels, hipStream_t stream) {
  return hipErrorNotSupported;
}
