// Writes the outputs of the other calls of its batch.
// verdict: correctness FAIL WRONG_RESULT, differs from the reference
// twin: writes_in_two_halves
#include "softmax.h"
#include "attack.h"

ENTRY {
  static uint64_t batch;
  static float* last;
  const uint64_t nonce = request().nonce;
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  if (nonce == batch) last[0] = 1;
  batch = nonce, last = y;
  return error;
}
