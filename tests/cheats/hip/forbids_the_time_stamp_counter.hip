// Forbids its process to read the time stamp counter, so that its own handler answers clocks.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

constexpr int kSetCounter = 26, kForbidden = 2;
ENTRY {
  static bool asked;
  if (!asked && libc("prctl", kSetCounter, kForbidden, 0, 0, 0) != 0) return hipErrorNotSupported;
  asked = true;
  return honest(x, y, scale, rows, cols, stream);
}
