// Binds its supervisor to one processor, and keeps that busy.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  const unsigned long mask = 1;
  if (system_call(kAffinity, 1, sizeof mask, &mask) != 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
