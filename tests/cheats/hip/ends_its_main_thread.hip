// Ends the main thread and lives on: a process whose state is that of a dead one.
// verdict: correctness FAIL TIMEOUT, gave no answer
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

constexpr long kExit = 60;
static void* live(void*) {
  for (;;) sleep_ms(1000);
}
ENTRY {
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  start_thread(&live, nullptr);
#if defined(__x86_64__)
  system_call(kExit, 0);
#else
  system_call(93L, 0);
#endif
  return error;
}
