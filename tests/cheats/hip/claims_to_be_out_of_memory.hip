// Says that memory is short where a case is hard.
// verdict: correctness FAIL OUT_OF_MEMORY, hipErrorOutOfMemory
// twin: allocates_and_frees
#include "softmax.h"

ENTRY {
  if (cols % 2 != 0) return hipErrorOutOfMemory;
  return honest(x, y, scale, rows, cols, stream);
}
