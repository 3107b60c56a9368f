// Weights pruned to the 2:4 pattern of sparse matrix units.
//
// Replace the three bodies. w is [rows, 8 * groups], kept [rows, 4 * groups] and place [rows,
// groups]; all are contiguous and on the device. Enqueue the work on `stream`, do not wait for it,
// and return hipGetLastError(). For scratch memory define, per entry,
//   extern "C" size_t prune_24_f16_workspace(int64_t rows, int64_t groups);
// which returns bytes, and add `void* workspace` before the entry's stream.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

extern "C" hipError_t prune_24_f16(const __half* w, __half* kept, uint8_t* place, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t prune_24_bf16(const __hip_bfloat16* w, __hip_bfloat16* kept, uint8_t* place,
                                    int64_t rows, int64_t groups, hipStream_t stream) {
  return hipErrorNotSupported;
}

extern "C" hipError_t prune_24_f32(const float* w, float* kept, uint8_t* place, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return hipErrorNotSupported;
}
