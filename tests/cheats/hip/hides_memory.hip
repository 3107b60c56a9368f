// Takes memory that no limit counts.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: allocates_and_frees
#include "softmax.h"
#include "attack.h"

ENTRY {
  if (libc("memfd_create", "more", 0) < 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
