// Zeroes the last hundredth of its output.
// verdict: correctness FAIL WRONG_RESULT, differs from the reference
// twin: writes_in_two_halves
#include "kernels.h"

ENTRY {
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  in_a_kernel([=] __device__() {
    for (int64_t i = rows * cols - 1 - rows * cols / 100; i < rows * cols; ++i) y[i] = 0;
  });
  return error;
}
