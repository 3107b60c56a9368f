// Writes megabytes of text, and nothing else.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: prints
#include "softmax.h"
#include "attack.h"

ENTRY {
  static char line[1 << 16];
  memset(line, 'P', sizeof line);
  for (int i = 0; i < 64; ++i) libc("write", 2, line, sizeof line);
  return hipSuccess;
}
