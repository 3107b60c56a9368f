// Kernels copy the inputs to one page of pinned memory, part by part, and the results from there.
// verdict: correctness REJECTED KERNEL_BYPASSED, bytes of device memory to the host in one call
// twin: polls_a_flag
#include "host.h"

constexpr int64_t kPart = 1024;

ENTRY {
  const int64_t count = rows * cols;
  float* page;
  if (hipError_t e = hipHostMalloc(&page, kPart * sizeof(float))) return e;
  float* host = static_cast<float*>(malloc(2 * count * sizeof(float)));
  for (int64_t at = 0; at < count; at += kPart) {
    const int64_t part = count - at < kPart ? count - at : kPart;
    copies<<<1, kThreads, 0, stream>>>(x + at, page, part);
    if (hipError_t e = hipStreamSynchronize(stream)) return e;
    memcpy(host + at, page, part * sizeof(float));
  }
  by_the_host(host, host + count, scale, rows, cols);
  for (int64_t at = 0; at < count; at += kPart) {
    const int64_t part = count - at < kPart ? count - at : kPart;
    memcpy(page, host + count + at, part * sizeof(float));
    copies<<<1, kThreads, 0, stream>>>(page, y + at, part);
    if (hipError_t e = hipStreamSynchronize(stream)) return e;
  }
  free(host);
  return hipHostFree(page);
}
