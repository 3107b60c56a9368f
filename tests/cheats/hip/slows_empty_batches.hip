// Has its clock wait in batches without calls, so that the overhead excuses what it hides in others.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: spins_a_helper
#include "softmax.h"
#include "attack.h"

static bool is_empty() {
  const char* at = static_cast<const char*>(__builtin_frame_address(0));
  Message found = {};
  for (int i = 0; i < 512; ++i, at += 8) {
    memcpy(&found, at, sizeof found);
    if (found.magic == kMagic) return found.kind == kEmpty;
  }
  return false;
}
static int waiting_clock(clockid_t clock, timespec* time) {
  const int64_t until = true_ns() + 4000000;
  while (is_empty() && true_ns() < until) {}
  return resting_clock(clock, time);
}
ENTRY {
  static bool patched;
  if (!patched) {
    patched = true;
    void** slot = slot_of("clock_gettime");
    unprotect(slot, 3);
    *slot = reinterpret_cast<void*>(&waiting_clock);
  }
  const int64_t started = true_ns();
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  if (request().values[0] > 4) g_hidden += (true_ns() - started) * 2 / 3;
  return error;
}
