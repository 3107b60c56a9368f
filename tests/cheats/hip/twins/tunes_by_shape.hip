// Chooses its block size by the shape, and is right for all.
// passes: correctness unseen
#include "softmax.h"

ENTRY {
  if (cols <= 32) {
    softmax_rows<<<rows, kThreads, 0, stream>>>(x, y, scale, cols);
    return hipGetLastError();
  }
  return honest(x, y, scale, rows, cols, stream);
}
