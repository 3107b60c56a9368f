// Never returns from one shape.
// verdict: correctness FAIL TIMEOUT, no answer within
// twin: tunes_by_shape
#include "softmax.h"

ENTRY {
  for (volatile int64_t left = rows == 1 ? INT64_MAX : 0; left > 0; left = left - 1) {}
  return honest(x, y, scale, rows, cols, stream);
}
