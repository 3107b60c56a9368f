// Makes a library that fills the disk of its sandbox, which would end without a verdict.
// verdict: compile FAIL COMPILE_ERROR, a file of more than 128 MiB
// twin: constructs
#include "softmax.h"

char filling[900 << 20] = {1};
ENTRY {
  return honest(x, y, scale, rows, cols, stream);
}
