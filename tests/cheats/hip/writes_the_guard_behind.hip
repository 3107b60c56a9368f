// Writes behind its output.
// verdict: correctness REJECTED OUT_OF_BOUNDS, past the end
// twin: writes_in_two_halves
#include "kernels.h"

ENTRY {
  in_a_kernel([=] __device__() { y[rows * cols] = 0; });
  return honest(x, y, scale, rows, cols, stream);
}
