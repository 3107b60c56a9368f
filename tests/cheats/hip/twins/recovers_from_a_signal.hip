// Handles a signal that it sends itself.
// passes: correctness
#include "softmax.h"
#include "attack.h"

static volatile int g_seen;
static void handle(int) { g_seen = 1; }
ENTRY {
  libc("signal", 10, &handle);
  libc("raise", 10);
  if (!g_seen) return hipErrorUnknown;
  return honest(x, y, scale, rows, cols, stream);
}
