// Logarithms of the probabilities of tokens, and entropies.
//
// Replace the three bodies. logits is [rows, vocab], the others [rows]; all are contiguous and on
// the device. Enqueue the work on `stream`, do not wait for it, and return hipGetLastError(). For
// scratch memory define, per entry,
//   extern "C" size_t token_logprob_f32_workspace(int64_t rows, int64_t vocab);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t token_logprob_f32(const float* logits, const int64_t* token, float* logprob,
                                        float* entropy, float temperature, int64_t rows,
                                        int64_t vocab, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t token_logprob_f16(const __half* logits, const int64_t* token, float* logprob,
                                        float* entropy, float temperature, int64_t rows,
                                        int64_t vocab, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t token_logprob_bf16(const __hip_bfloat16* logits, const int64_t* token,
                                         float* logprob, float* entropy, float temperature,
                                         int64_t rows, int64_t vocab, hipStream_t stream) {
  return hipErrorNotSupported;
}
