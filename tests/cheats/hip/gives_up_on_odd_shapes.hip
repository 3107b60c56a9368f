// Returns an error for shapes that it does not like, hoping that they are skipped.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: tunes_by_shape
#include "softmax.h"

ENTRY {
  if (cols % 2 != 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
