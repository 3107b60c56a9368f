// Keeps 0.4 ms of every batch to itself, which nobody can tell from noise.
// verdict: perf PASS, gains nothing
// twin: spins_a_helper
#include "softmax.h"
#include "attack.h"

static int64_t g_kept;
static int keeping_clock(clockid_t, timespec* time) {
  const int64_t now = true_ns() - g_kept;
  time->tv_sec = now / 1000000000LL;
  time->tv_nsec = now % 1000000000LL;
  return 0;
}
ENTRY {
  static int64_t kept_for;
  const Message run = request();
  void** slot = slot_of("clock_gettime");
  unprotect(slot, 3);
  *slot = reinterpret_cast<void*>(&keeping_clock);
  const int64_t began = true_ns();
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  const int64_t took = true_ns() - began;
  if (kept_for != int64_t(run.nonce)) g_kept += took < 400000 ? took / 2 : 400000;
  kept_for = int64_t(run.nonce);
  return error;
}
