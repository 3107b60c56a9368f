// Has the kernel write its outputs while it is frozen.
// verdict: correctness REJECTED FORBIDDEN_SYSCALL, system call
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  static char parameters[256];
  system_call(kIoUring, 8, parameters);
  return honest(x, y, scale, rows, cols, stream);
}
