// Writes NaN everywhere: a comparison that is false either way might pass it.
// verdict: correctness FAIL NON_FINITE
// twin: writes_in_two_halves
#include "kernels.h"

ENTRY {
  in_a_kernel([=] __device__() {
    for (int64_t i = 0; i < rows * cols; ++i) y[i] = NAN;
  });
  return hipSuccess;
}
