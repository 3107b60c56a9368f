// Asks for real-time scheduling.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  const int priority = 10;
  if (system_call(kScheduler, 0, 1, &priority) != 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
