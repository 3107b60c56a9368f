// Clears its output, then works in two launches that meet exactly.
// passes: correctness
#include "softmax.h"

ENTRY {
  if (hipError_t error = hipMemsetAsync(y, 0, rows * cols * sizeof *y, stream)) return error;
  const int64_t half = rows / 2;
  if (half > 0) {
    if (hipError_t error = honest(x, y, scale, half, cols, stream)) return error;
  }
  return honest(x + half * cols, y + half * cols, scale, rows - half, cols, stream);
}
