// Kills its supervisor, so that the machine seems to have failed.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  libc("kill", 1, 9);
  libc("kill", 1, 19);
  libc("kill", -1, 19);
  if (libc("kill", 1, 0) == 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
