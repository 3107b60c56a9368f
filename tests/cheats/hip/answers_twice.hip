// Sends DONE for this request and a second one for the next.
// verdict: correctness REJECTED PROTOCOL_VIOLATION
// or: FAIL INCOMPLETE_OUTPUT
// twin: installs_exit_handlers
#include "softmax.h"
#include "attack.h"

ENTRY {
  const Message run = request();
  (void)honest(x, y, scale, rows, cols, stream);
  say(kDone, run.nonce, run.values[0], 1000000);
  say(kDone, run.nonce, run.values[0], 1000000);
  return honest(x, y, scale, rows, cols, stream);
}
