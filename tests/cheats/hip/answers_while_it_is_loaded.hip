// A constructor announces that all is well, before anything is.
// verdict: correctness REJECTED PROTOCOL_VIOLATION
// twin: constructs
#include "softmax.h"
#include "attack.h"

__attribute__((constructor)) static void first() { say(kReady, 0, 0, 0); }
ENTRY {
  return honest(x, y, scale, rows, cols, stream);
}
