// Makes its inputs readable again before it computes on the host, where they lie or elsewhere.
// verdict: correctness REJECTED KERNEL_BYPASSED, host code reads device memory
// twin: launches_by_what_it_counted
#include "host.h"
#include "attack.h"

ENTRY {
  const long bytes = rows * cols * sizeof *x;
  const uintptr_t first = reinterpret_cast<uintptr_t>(x) / 4096 * 4096;
  const long whole = (reinterpret_cast<uintptr_t>(x) + bytes - first + 4095) / 4096 * 4096;
  libc("mprotect", first, whole, 1);
  const long moved = libc("mremap", first, whole, whole, 3, 0x123400000000);
  if (moved == 0x123400000000) libc("mprotect", moved, whole, 1);
  float* scratch;
  if (hipError_t e = hipMalloc(&scratch, bytes)) return e;
  by_the_host(x, scratch, scale, rows, cols);
  copies<<<rows, kThreads, 0, stream>>>(scratch, y, cols);
  return hipFree(scratch);
}
