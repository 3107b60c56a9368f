// Advises, syncs and asks about memory and files as libraries do; goes on where that is refused.
// passes: correctness
#include "softmax.h"
#include "attack.h"

ENTRY {
  void* scratch = malloc(1 << 20);
  system_call(kAdvise, (reinterpret_cast<uintptr_t>(scratch) + 4095) & ~4095ul, 65536L, 4L);
  system_call(kSync);
  system_call(kLockAll, 1L);
  system_call(kBindMemory, scratch, 4096L, 0L, 0L, 0L, 0L);
  free(scratch);
  return honest(x, y, scale, rows, cols, stream);
}
