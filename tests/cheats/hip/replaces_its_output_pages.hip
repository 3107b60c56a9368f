// Maps private memory over its output, which the judge never sees.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: allocates_and_frees
#include "softmax.h"
#include "attack.h"

ENTRY {
  const uintptr_t page = reinterpret_cast<uintptr_t>(y) / 4096 * 4096;
  libc("mmap", page, size_t(rows * cols * sizeof *y), 3, 0x32, -1, 0L);
  return honest(x, y, scale, rows, cols, stream);
}
