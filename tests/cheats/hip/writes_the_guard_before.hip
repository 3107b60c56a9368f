// Writes before its output.
// verdict: correctness REJECTED OUT_OF_BOUNDS, before the start
// twin: writes_in_two_halves
#include "kernels.h"

ENTRY {
  in_a_kernel([=] __device__() { y[-1] = 0; });
  return honest(x, y, scale, rows, cols, stream);
}
