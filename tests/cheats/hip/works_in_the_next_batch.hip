// Puts every call off until the next one.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// or: REJECTED KERNEL_BYPASSED
// twin: keeps_a_workspace
#include "softmax.h"

ENTRY {
  static const float* last_x;
  static float* last_y;
  if (last_y != nullptr) (void)honest(last_x, last_y, scale, rows, cols, stream);
  last_x = x, last_y = y;
  return hipSuccess;
}
