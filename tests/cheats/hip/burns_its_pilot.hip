// Is slow in batches of one call, so that few calls are planned, and hides their work later.
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: spins_a_helper
#include "softmax.h"
#include "attack.h"

ENTRY {
  static bool patched;
  if (!patched) rest_the_clock();
  patched = true;
  if (request().values[0] > 1) begin_rest();
  const int64_t until = true_ns() + 12000000;
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  while (g_since == 0 && true_ns() < until) {}
  if (g_since != 0) end_rest();
  return error;
}
