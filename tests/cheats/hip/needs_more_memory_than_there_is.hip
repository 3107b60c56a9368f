// Has so large a variable that no machine can load it: the loader's failure, and not its own.
// verdict: correctness FAIL COMPILE_ERROR, does not load
// twin: constructs
#include "softmax.h"

char huge[8ull << 40];
ENTRY {
  huge[rows] = 1;
  return honest(x, y, scale, rows, cols, stream);
}
