// A block larger than there is.
// verdict: correctness FAIL LAUNCH_ERROR
#include "doubling.h"

DOUBLING {
  doubled<<<blocks(n), 4096, 0, stream>>>(x, y, n);
  return hipGetLastError();
}
