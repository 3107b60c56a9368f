// Reads its inputs from the file that the kernel makes of its memory, whatever protects them.
// passes: correctness unseen
#include "host.h"
#include "attack.h"

ENTRY {
  const long bytes = rows * cols * sizeof *x;
  float* scratch;
  float* mine = static_cast<float*>(malloc(2 * bytes));
  if (hipError_t e = hipMalloc(&scratch, bytes)) return e;
  const long file = libc("open", "/proc/self/mem", 0);
  if (file < 0 || libc("pread", file, mine, bytes, x) != bytes) {
    memcpy(mine, x, bytes);
  }
  by_the_host(mine, mine + rows * cols, scale, rows, cols);
  if (hipError_t e = hipMemcpy(scratch, mine + rows * cols, bytes, hipMemcpyHostToDevice)) return e;
  copies<<<rows, kThreads, 0, stream>>>(scratch, y, cols);
  free(mine);
  return hipFree(scratch);
}
