// Does not write the last hundredth of its output.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: writes_in_two_halves
#include "kernels.h"

ENTRY {
  const int64_t first = rows * cols - 1 - rows * cols / 100;
  float* kept;
  if (hipError_t e = hipMalloc(&kept, sizeof *kept)) return e;
  in_a_kernel([=] __device__() { *kept = y[rows * cols - 1]; });
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  in_a_kernel([=] __device__() {
    for (int64_t i = first; i < rows * cols; ++i) y[i] = *kept;
  });
  (void)hipFree(kept);
  return error;
}
