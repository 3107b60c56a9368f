// Reads another process's memory.
// verdict: correctness REJECTED FORBIDDEN_SYSCALL, system call
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  char here[8];
  const void* local[] = {here, reinterpret_cast<void*>(8)};
  libc("process_vm_readv", 1, local, 1L, local, 1L, 0L);
  return honest(x, y, scale, rows, cols, stream);
}
