// Reports more calls than were asked for.
// verdict: correctness REJECTED PROTOCOL_VIOLATION, calls
// twin: installs_exit_handlers
#include "softmax.h"
#include "attack.h"

ENTRY {
  const Message run = request();
  say(kDone, run.nonce, run.values[0] + 1, 1000000);
  sleep_ms(100);
  return honest(x, y, scale, rows, cols, stream);
}
