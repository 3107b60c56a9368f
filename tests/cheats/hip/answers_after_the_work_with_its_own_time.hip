// Sends DONE itself once the last call is done, with a time of its own, and drops the runner's.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

static bool g_drop;
static long drop_one(int fd, const void* message, size_t size, int flags) {
  if (!g_drop) return libc("send", fd, message, size, flags);
  g_drop = false;
  return long(size);
}
ENTRY {
  static int64_t calls;
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  const Message run = request();
  if (!timed(run, rows) || ++calls < run.values[0]) return error;
  calls = 0;
  void** slot = slot_of("send");
  unprotect(slot, 3);
  *slot = reinterpret_cast<void*>(&drop_one);
  g_drop = true;
  say(kDone, run.nonce, run.values[0], 400000);
  return error;
}
