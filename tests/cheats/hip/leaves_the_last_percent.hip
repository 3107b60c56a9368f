// Does not write the last hundredth of its output.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: writes_in_two_halves
#include "softmax.h"

ENTRY {
  const float kept = y[rows * cols - 1];
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  for (int64_t i = rows * cols - 1 - rows * cols / 100; i < rows * cols; ++i) y[i] = kept;
  return error;
}
