// Writes NaN everywhere: a comparison that is false either way might pass it.
// verdict: correctness FAIL NON_FINITE
// twin: writes_in_two_halves
#include "softmax.h"

ENTRY {
  for (int64_t i = 0; i < rows * cols; ++i) y[i] = NAN;
  return hipSuccess;
}
