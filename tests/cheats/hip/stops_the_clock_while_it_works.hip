// The clock stands still during a call, and goes on between calls.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

static int64_t g_hidden, g_since;
static int resting_clock(clockid_t, timespec* time) {
  const int64_t now = (g_since != 0 ? g_since : true_ns()) - g_hidden;
  time->tv_sec = now / 1000000000LL;
  time->tv_nsec = now % 1000000000LL;
  return 0;
}
ENTRY {
  static bool patched;
  if (!patched) {
    patched = true;
    void** slot = slot_of("clock_gettime");
    unprotect(slot, 3);
    *slot = reinterpret_cast<void*>(&resting_clock);
  }
  g_since = true_ns();
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  g_hidden += true_ns() - g_since - 1000;
  g_since = 0;
  return error;
}
