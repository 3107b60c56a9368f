// Computes in host code, which on a GPU could not even read its inputs.
// verdict: correctness REJECTED KERNEL_BYPASSED, no launched kernel ran
// twin: launches_from_helpers
#include "softmax.h"

ENTRY {
  softmax_rows<<<1, kThreads, 0, stream>>>(x, y, scale, 1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * cols;
    float* out = y + r * cols;
    float top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
    for (int64_t c = 0; c < cols; ++c) sum += out[c] = expf(in[c] * scale - top);
    for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
  }
  return hipGetLastError();
}
