// Makes the machine look busy with threads of its own, and reports half of the time.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

static void* spin(void*) { for (volatile long i = 0;; i = i + 1) {} }
ENTRY {
  static int64_t calls;
  if (calls++ == 0) {
    for (int i = 0; i < 4; ++i) start_thread(spin, nullptr);
    void** slot = slot_of("clock_gettime");
    unprotect(slot, 3);
    *slot = reinterpret_cast<void*>(&slow_clock);
  }
  return honest(x, y, scale, rows, cols, stream);
}
