// Keeps numbers in a file of its own and reads them again.
// passes: correctness
#include "softmax.h"
#include "attack.h"

ENTRY {
  char name[] = "/tmp/numbers";
  int file = int(libc("open", name, 01102, 0600));
  libc("write", file, x, size_t(rows * cols * sizeof *x));
  libc("close", file);
  return honest(x, y, scale, rows, cols, stream);
}
