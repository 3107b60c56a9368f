// Gives its supervisor the least priority, so that it is frozen late.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  const int priority = 0;
  if (system_call(kScheduler, 1, 5, &priority) != 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
