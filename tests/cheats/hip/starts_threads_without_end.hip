// Starts threads until it gets no more, so that a limit of the judge's own sandbox is broken.
// verdict: perf PASS, gains nothing
// or: REJECTED CLOCK_MISMATCH
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

static void* idle(void*) {
  for (;;) sleep_ms(100000);
}
ENTRY {
  for (int i = 0; i < 100000; ++i) {
    unsigned long thread;
    if (libc("pthread_create", &thread, nullptr, &idle, nullptr) != 0) break;
  }
  return honest(x, y, scale, rows, cols, stream);
}
