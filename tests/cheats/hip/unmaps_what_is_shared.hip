// Takes away the memory that it shares with the judge.
// verdict: correctness FAIL CRASH
// twin: allocates_and_frees
#include "softmax.h"
#include "attack.h"

ENTRY {
  (void)honest(x, y, scale, rows, cols, stream);
  libc("munmap", reinterpret_cast<uintptr_t>(x) / 4096 * 4096, size_t{1} << 30);
  return hipSuccess;
}
