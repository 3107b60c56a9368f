// Says that memory is short where a case is hard.
// verdict: correctness FAIL OUT_OF_MEMORY, hipError_t 2
// twin: allocates_and_frees
#include "softmax.h"

ENTRY {
  if (cols % 2 != 0) return hipErrorOutOfMemory;
  return honest(x, y, scale, rows, cols, stream);
}
