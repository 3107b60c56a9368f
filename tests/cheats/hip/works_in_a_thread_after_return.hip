// Hands each call to a thread that works once the call has returned.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

struct Work { const float* x; float* y; float scale; int64_t rows, cols; };
static void* later(void* argument) {
  const Work work = *static_cast<Work*>(argument);
  sleep_ms(300);
  (void)honest(work.x, work.y, work.scale, work.rows, work.cols, nullptr);
  return nullptr;
}
ENTRY {
  static Work work[64];
  static int calls;
  work[calls % 64] = Work{x, y, scale, rows, cols};
  start_thread(later, &work[calls++ % 64]);
  return hipSuccess;
}
