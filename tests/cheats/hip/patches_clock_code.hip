// Writes a jump over clock_gettime itself, for all callers in the process.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

ENTRY {
  static bool patched;
  if (!patched) {
    patched = true;
    detour(in_libc("clock_gettime"), reinterpret_cast<void*>(&slow_clock));
  }
  return honest(x, y, scale, rows, cols, stream);
}
