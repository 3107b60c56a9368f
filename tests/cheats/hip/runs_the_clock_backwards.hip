// Reports a time that no clock can have shown.
// verdict: correctness REJECTED PROTOCOL_VIOLATION, ns in a batch
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

static int backward_clock(clockid_t, timespec* time) {
  const int64_t now = (int64_t{1} << 60) - true_ns();
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
    *slot = reinterpret_cast<void*>(&backward_clock);
  }
  return honest(x, y, scale, rows, cols, stream);
}
