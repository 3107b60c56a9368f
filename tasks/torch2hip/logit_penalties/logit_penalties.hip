// Probabilities of tokens, with penalties for those that the text has already.
//
// Replace the three bodies. logits, seen and probability are [rows, vocab], the settings [rows];
// all are contiguous and on the device. Enqueue the work on `stream`, do not wait for it, and
// return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t logit_penalties_f32_workspace(int64_t rows, int64_t vocab);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>


extern "C" hipError_t logit_penalties_f32(const float* logits, const uint8_t* seen,
                                          const float* repetition, const float* presence,
                                          const float* frequency, const float* temperature,
                                          float* probability, int64_t rows, int64_t vocab,
                                          hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t logit_penalties_f16(const __half* logits, const uint8_t* seen,
                                          const float* repetition, const float* presence,
                                          const float* frequency, const float* temperature,
                                          float* probability, int64_t rows, int64_t vocab,
                                          hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t logit_penalties_bf16(const __hip_bfloat16* logits, const uint8_t* seen,
                                           const float* repetition, const float* presence,
                                           const float* frequency, const float* temperature,
                                           float* probability, int64_t rows, int64_t vocab,
                                           hipStream_t stream) {
  return hipErrorNotSupported;
}
