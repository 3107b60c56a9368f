// The clock stands still during a call, and goes on between calls.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

ENTRY {
  static bool patched;
  if (!patched) rest_the_clock();
  patched = true;
  begin_rest();
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  end_rest();
  return error;
}
