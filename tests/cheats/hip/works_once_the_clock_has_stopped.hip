// Answers first and works then, before the judge has frozen it.
// verdict: perf FAIL INCOMPLETE_OUTPUT
// or: REJECTED CLOCK_MISMATCH
// or: REJECTED KERNEL_BYPASSED
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

static const float* g_x[64];
static float* g_y[64];
static bool g_drop;
static long drop_one(int fd, const void* message, size_t size, int flags) {
  if (!g_drop) return libc("send", fd, message, size, flags);
  g_drop = false;
  return long(size);
}
ENTRY {
  static int64_t calls;
  const Message run = request();
  if (!timed(run, rows)) return honest(x, y, scale, rows, cols, stream);
  g_x[calls] = x, g_y[calls] = y;
  if (++calls < run.values[0]) return hipSuccess;
  void** slot = slot_of("send");
  unprotect(slot, 3);
  *slot = reinterpret_cast<void*>(&drop_one);
  g_drop = true;
  say(kDone, run.nonce, calls, 1000);
  sleep_ms(50);
  for (int64_t i = 0; i < calls; ++i) (void)honest(g_x[i], g_y[i], scale, rows, cols, stream);
  calls = 0;
  return hipSuccess;
}
