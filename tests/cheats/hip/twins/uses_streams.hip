// Works on a stream of its own, and waits for it.
// passes: correctness
#include "softmax.h"

ENTRY {
  static hipStream_t own;
  if (own == nullptr) {
    if (hipError_t error = hipStreamCreateWithFlags(&own, hipStreamNonBlocking)) return error;
  }
  if (hipError_t error = honest(x, y, scale, rows, cols, own)) return error;
  return hipStreamSynchronize(own);
}
