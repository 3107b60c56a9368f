// Writes the outputs of the other calls of its batch.
// verdict: correctness REJECTED OUT_OF_BOUNDS, a write of 'y' of another call
// or: FAIL WRONG_RESULT
// twin: writes_in_two_halves
#include "kernels.h"
#include "attack.h"

ENTRY {
  static uint64_t batch;
  static float* last;
  const uint64_t nonce = request().nonce;
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  if (nonce == batch) {
    float* other = last;
    in_a_kernel([=] __device__() { other[0] = 1; });
  }
  batch = nonce, last = y;
  return error;
}
