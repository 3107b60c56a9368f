// Has threads that walk through memory whenever no call is under way, to slow the baseline.
// verdict: perf PASS, gains nothing
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

constexpr size_t kBytes = 64u << 20;
static volatile char* g_memory;
static int g_calls;
static void* walk(void*) {
  for (size_t at = 0;; at = (at + 4099 * 64) % kBytes) {
    if (__atomic_load_n(&g_calls, __ATOMIC_RELAXED) != 0) sleep_us(50);
    g_memory[at] = g_memory[at] + 1;
  }
}
ENTRY {
  if (g_memory == nullptr) {
    g_memory = static_cast<char*>(malloc(kBytes));
    for (int i = 0; i < 4; ++i) start_thread(walk, nullptr);
  }
  __atomic_store_n(&g_calls, 1, __ATOMIC_RELEASE);
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  __atomic_store_n(&g_calls, 0, __ATOMIC_RELEASE);
  return error;
}
