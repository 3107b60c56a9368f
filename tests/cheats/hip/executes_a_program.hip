// Becomes another program.
// verdict: correctness REJECTED FORBIDDEN_SYSCALL, system call
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  const char* nothing[] = {nullptr};
  libc("execve", "/bin/true", nothing, nothing);
  return honest(x, y, scale, rows, cols, stream);
}
