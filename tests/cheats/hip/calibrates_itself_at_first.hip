// Takes the largest value of its first forty calls for the maximum of all others.
// verdict: perf FAIL NON_FINITE
// or: FAIL WRONG_RESULT
// twin: chooses_by_its_values
#include "trusting.h"

__global__ void finds(const float* x, float* found, float scale, int64_t count) {
  *found = 0;
  for (int64_t i = 0; i < count; ++i) *found = fmaxf(*found, x[i] * scale);
}
ENTRY {
  static int calls;
  static float top;
  static float* found;
  if (found == nullptr && hipMalloc(&found, sizeof *found) != hipSuccess) return hipErrorOutOfMemory;
  if (++calls <= 40) {
    finds<<<1, 1, 0, stream>>>(x, found, scale, rows * cols);
    float here = 0;
    if (hipError_t e = hipMemcpy(&here, found, sizeof here, hipMemcpyDeviceToHost)) return e;
    top = fmaxf(top, here);
    return honest(x, y, scale, rows, cols, stream);
  }
  trusting<<<rows, 1, 0, stream>>>(x, y, scale, top, cols);
  return hipGetLastError();
}
