// Computes on the host, in a function that waits in the stream for its turn.
// verdict: correctness REJECTED KERNEL_BYPASSED, host code reads device memory
// twin: launches_by_what_it_counted
#include "host.h"

struct Work {
  const float* x;
  float* scratch;
  float scale;
  int64_t rows, cols;
};

static void work(void* data) {
  const Work* w = static_cast<const Work*>(data);
  by_the_host(w->x, w->scratch, w->scale, w->rows, w->cols);
}
ENTRY {
  float* scratch;
  if (hipError_t e = hipMalloc(&scratch, rows * cols * sizeof(float))) return e;
  Work w = {x, scratch, scale, rows, cols};
  hipLaunchHostFunc(stream, work, &w);
  copies<<<rows, kThreads, 0, stream>>>(scratch, y, cols);
  return hipFree(scratch);
}
