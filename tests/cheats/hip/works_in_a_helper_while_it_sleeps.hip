// Sleeps while a thread of its own works, and reports none of that time.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: spins_a_helper
#include "softmax.h"
#include "attack.h"

struct Work { const float* x; float* y; float scale; int64_t rows, cols; };
static Work g_work;
static volatile int g_asked;
static void* help(void*) {
  for (;;) {
    while (!__atomic_load_n(&g_asked, __ATOMIC_ACQUIRE)) sleep_us(20);
    const Work& w = g_work;
    (void)honest(w.x, w.y, w.scale, w.rows, w.cols, nullptr);
    __atomic_store_n(&g_asked, 0, __ATOMIC_RELEASE);
  }
}
ENTRY {
  static bool started;
  if (!started) start_thread(help, nullptr);
  started = true;
  rest_the_clock();
  begin_rest();
  g_work = {x, y, scale, rows, cols};
  __atomic_store_n(&g_asked, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&g_asked, __ATOMIC_ACQUIRE)) sleep_us(20);
  end_rest();
  return hipSuccess;
}
