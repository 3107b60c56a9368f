// Forks a copy that could work on while this process is frozen.
// verdict: correctness REJECTED FORBIDDEN_SYSCALL, system call
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  libc("fork");
  return honest(x, y, scale, rows, cols, stream);
}
