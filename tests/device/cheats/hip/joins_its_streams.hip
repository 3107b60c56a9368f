// Honest: half of the work in a stream of its own, which events join to the given one.
// verdict: perf PASS
// clock: gate
#include "doubling.h"

DOUBLING {
  static hipStream_t own = nullptr;
  static hipEvent_t begun, done;
  if (own == nullptr) {
    hipStreamCreateWithFlags(&own, hipStreamNonBlocking);
    hipEventCreateWithFlags(&begun, hipEventDisableTiming);
    hipEventCreateWithFlags(&done, hipEventDisableTiming);
  }
  const int64_t half = (n + 1) / 2;
  hipEventRecord(begun, stream);
  hipStreamWaitEvent(own, begun, 0);
  doubled<<<blocks(half), kThreads, 0, own>>>(x, y, half);
  if (n > half) {
    doubled<<<blocks(n - half), kThreads, 0, stream>>>(x + half, y + half, n - half);
  }
  hipEventRecord(done, own);
  hipStreamWaitEvent(stream, done, 0);
  return hipGetLastError();
}
