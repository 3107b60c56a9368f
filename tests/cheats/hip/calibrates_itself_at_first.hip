// Takes the largest value of its first forty calls for the maximum of all others.
// verdict: perf FAIL NON_FINITE
// or: FAIL WRONG_RESULT
// twin: chooses_by_its_values
#include "trusting.h"

ENTRY {
  static int calls;
  static float top;
  if (++calls <= 40) {
    for (int64_t i = 0; i < rows * cols; ++i) top = fmaxf(top, x[i] * scale);
    return honest(x, y, scale, rows, cols, stream);
  }
  trusting<<<rows, 1, 0, stream>>>(x, y, scale, top, cols);
  return hipGetLastError();
}
