// A gated causal convolution whose filters are as long as the sequence.
//
// Replace the three bodies. u, gate and y are [batch, channels, seq], filter is [channels, seq]
// and skip [channels]; all are contiguous and on the device. Enqueue the work on `stream`, do not
// wait for it, and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t fft_conv_f32_workspace(int64_t batch, int64_t channels, int64_t seq);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t fft_conv_f32(const float* u, const float* gate, const float* filter,
                                   const float* skip, float* y, int64_t batch, int64_t channels,
                                   int64_t seq, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t fft_conv_f16(const __half* u, const __half* gate, const float* filter,
                                   const float* skip, __half* y, int64_t batch, int64_t channels,
                                   int64_t seq, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t fft_conv_bf16(const __hip_bfloat16* u, const __hip_bfloat16* gate,
                                    const float* filter, const float* skip, __hip_bfloat16* y,
                                    int64_t batch, int64_t channels, int64_t seq,
                                    hipStream_t stream) {
  return hipErrorNotSupported;
}
