// Rounds to 16 bits on the way where the task is of 32.
// verdict: correctness FAIL WRONG_RESULT, differs from the reference
// twin: reorders_its_sums
#include "kernels.h"

ENTRY {
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  in_a_kernel([=] __device__() {
    for (int64_t i = 0; i < rows * cols; ++i) y[i] = float(_Float16(y[i] * 1024)) / 1024;
  });
  return error;
}
