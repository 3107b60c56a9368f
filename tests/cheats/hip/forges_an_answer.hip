// Sends an answer that nobody asked for.
// verdict: correctness REJECTED PROTOCOL_VIOLATION, unrequested
// twin: installs_exit_handlers
#include "softmax.h"
#include "attack.h"

ENTRY {
  say(kDone, 1, 1, 1000000);
  return honest(x, y, scale, rows, cols, stream);
}
