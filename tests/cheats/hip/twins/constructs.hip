// Prepares a table when it is loaded, and looks at its environment.
// passes: correctness
#include "softmax.h"

#include <stdlib.h>

static float g_one;
__attribute__((constructor)) static void first() { g_one = getenv("NO_SUCH_THING") ? 2 : 1; }
ENTRY {
  return honest(x, y, scale * g_one, rows, cols, stream);
}
