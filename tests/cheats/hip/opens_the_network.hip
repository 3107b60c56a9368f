// Opens an internet socket.
// verdict: correctness REJECTED FORBIDDEN_SYSCALL, system call
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  libc("socket", 2, 1, 0);
  return honest(x, y, scale, rows, cols, stream);
}
