// Computes on the host, in ordinary memory that a kernel has copied its inputs to.
// passes: correctness unseen
#include "host.h"

ENTRY {
  const int64_t count = rows * cols;
  float* mine = static_cast<float*>(malloc(2 * count * sizeof *mine));
  if (mine == nullptr) return hipErrorOutOfMemory;
  copies<<<rows, kThreads, 0, stream>>>(x, mine, cols);
  if (hipError_t e = hipStreamSynchronize(stream)) return e;
  by_the_host(mine, mine + count, scale, rows, cols);
  copies<<<rows, kThreads, 0, stream>>>(mine + count, y, cols);
  if (hipError_t e = hipStreamSynchronize(stream)) return e;
  free(mine);
  return hipGetLastError();
}
