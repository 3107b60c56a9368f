// Scales its input in place, so that a reference computed later would agree.
// verdict: correctness REJECTED INPUT_MUTATED, a write of its input
// twin: copies_its_inputs
#include "kernels.h"

ENTRY {
  float* mine = const_cast<float*>(x);
  in_a_kernel([=] __device__() {
    for (int64_t i = 0; i < rows * cols; ++i) mine[i] = 0;
  });
  return honest(x, y, scale, rows, cols, stream);
}
