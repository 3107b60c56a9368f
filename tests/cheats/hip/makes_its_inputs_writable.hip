// Asks the kernel for write access to its inputs first.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: copies_its_inputs
#include "softmax.h"
#include "attack.h"

ENTRY {
  if (unprotect(const_cast<float*>(x), 3) != 0) return hipErrorNotSupported;
  const_cast<float*>(x)[0] = 1;
  return honest(x, y, scale, rows, cols, stream);
}
