// Asks to handle page faults itself, to make the judge wait for its own.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  if (system_call(kUserfault, 0) < 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
