// A kernel copies the inputs to memory that host code may read, which computes there.
// verdict: correctness REJECTED KERNEL_BYPASSED, bytes of device memory to the host in one call
// twin: launches_by_what_it_counted
#include "host.h"

ENTRY {
  float* shared;
  const size_t count = rows * cols;
  if (hipError_t e = hipHostMalloc(&shared, 2 * count * sizeof(float))) return e;
  copies<<<rows, kThreads, 0, stream>>>(x, shared, cols);
  if (hipError_t e = hipStreamSynchronize(stream)) return e;
  by_the_host(shared, shared + count, scale, rows, cols);
  copies<<<rows, kThreads, 0, stream>>>(shared + count, y, cols);
  if (hipError_t e = hipStreamSynchronize(stream)) return e;
  return hipHostFree(shared);
}
