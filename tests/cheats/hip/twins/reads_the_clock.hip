// Reads the clock, to time its own launch.
// passes: correctness perf
#include "softmax.h"

#include <time.h>

ENTRY {
  static double worst;
  timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  clock_gettime(CLOCK_MONOTONIC, &after);
  worst = fmax(worst, double(after.tv_nsec - before.tv_nsec));
  return error;
}
