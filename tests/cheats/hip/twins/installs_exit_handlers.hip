// Reads errno after a call that fails, and has something run at the end.
// passes: correctness
#include "softmax.h"
#include "attack.h"
#include <errno.h>

static void last() { libc("raise", 6); }
ENTRY {
  static bool installed;
  if (!installed) libc("__cxa_atexit", &last, nullptr, nullptr);
  installed = true;
  errno = 0;
  (void)strtol("99999999999999999999999", nullptr, 10);
  if (errno == 0) return hipErrorUnknown;
  return honest(x, y, scale, rows, cols, stream);
}
