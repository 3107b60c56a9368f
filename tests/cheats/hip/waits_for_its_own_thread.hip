// Starts a thread such that the kernel has it wait, unstoppable, for that thread's end.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: asks_the_kernel
#include "softmax.h"
#include "attack.h"

ENTRY {
  (void)honest(x, y, scale, rows, cols, stream);
  constexpr long kFlags = 0x100 | 0x800 | 0x10000 | 0x4000;  // VM, SIGHAND, THREAD, VFORK
  static char stack[1 << 16] __attribute__((aligned(16)));
  const long started = system_call(kClone, kFlags, stack + sizeof stack, 0L, 0L, 0L);
  return started < 0 ? static_cast<hipError_t>(99) : hipSuccess;
}
