// Moves its results within the tolerance by the time of day.
// verdict: correctness FAIL NONDETERMINISTIC, differs between equal calls
// twin: reads_the_clock
#include "kernels.h"

ENTRY {
  static uint32_t calls;
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  const float factor = 1 + 1e-6f * float(++calls % 7);
  in_a_kernel([=] __device__() { y[0] *= factor; });
  return error;
}
