// Keeps the result for the contents of a few elements.
// verdict: correctness FAIL WRONG_RESULT, differs from the reference
// twin: keeps_a_workspace
#include "softmax.h"

ENTRY {
  static float* result;
  static int64_t size;
  static float key;
  float sample;
  if (hipError_t e = hipMemcpy(&sample, x, sizeof sample, hipMemcpyDeviceToHost)) return e;
  const float here = sample > 0 ? 1.0f : -1.0f;
  if (size == rows * cols && key == here) {
    return hipMemcpy(y, result, size * sizeof *y, hipMemcpyDeviceToDevice);
  }
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  size = rows * cols, key = here;
  (void)hipFree(result);
  if (hipError_t e = hipMalloc(&result, size * sizeof *y)) return e;
  (void)hipMemcpy(result, y, size * sizeof *y, hipMemcpyDeviceToDevice);
  return error;
}
