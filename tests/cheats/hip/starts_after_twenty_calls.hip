// Leaves out the maximum once it has been called twenty times, when values are small for sure.
// verdict: perf FAIL NON_FINITE
// or: FAIL WRONG_RESULT
// twin: chooses_by_its_values
#include "trusting.h"

ENTRY {
  static int calls;
  if (++calls <= 20) return honest(x, y, scale, rows, cols, stream);
  trusting<<<rows, 1, 0, stream>>>(x, y, scale, 0, cols);
  return hipGetLastError();
}
