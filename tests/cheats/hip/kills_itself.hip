// Dies of the signal by which a machine without memory ends processes.
// verdict: correctness FAIL CRASH, although memory had not run out
// twin: recovers_from_a_signal
#include "softmax.h"
#include "attack.h"

ENTRY {
  libc("raise", 9);
  return honest(x, y, scale, rows, cols, stream);
}
