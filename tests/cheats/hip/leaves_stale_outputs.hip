// Leaves every second call to whatever the buffers hold: they hold poison.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: keeps_a_workspace
#include "softmax.h"

ENTRY {
  static int calls;
  if (++calls % 2 == 0) return hipSuccess;
  return honest(x, y, scale, rows, cols, stream);
}
