// Sends a message of no bytes, which looks like the end of a runner that died.
// verdict: correctness REJECTED PROTOCOL_VIOLATION, closed its control socket
// twin: launches_from_helpers
#include "softmax.h"
#include "attack.h"

ENTRY {
  (void)honest(x, y, scale, rows, cols, stream);
  libc("send", kControl, "", size_t{0}, 0);
  return hipSuccess;
}
