// Never returns to the runner: it reads and answers the judge's requests, and does nothing else.
// verdict: perf FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  Message message = request();
  if (!timed(message, rows)) return honest(x, y, scale, rows, cols, stream);
  for (;;) {
    const bool ran = message.kind == kRun || message.kind == kEmpty;
    const int64_t calls = message.kind == kRun ? message.values[0] : 0;
    say(ran ? kDone : message.kind == kBye ? kGone : kReady, message.nonce, calls, 1000);
    libc("recv", kControl, &message, sizeof message, 0);
  }
}
