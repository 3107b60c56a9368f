// Refuses rows that are longer than what it was tuned for.
// verdict: correctness FAIL LAUNCH_ERROR, extents
// twin: counts_columns_in_32_bits
#include "softmax.h"

ENTRY {
  if (cols > 65536) return hipErrorInvalidValue;
  return honest(x, y, scale, rows, cols, stream);
}
