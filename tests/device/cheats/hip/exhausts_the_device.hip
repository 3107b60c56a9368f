// Allocates until there is no more.
// verdict: correctness FAIL OUT_OF_MEMORY
#include "doubling.h"

DOUBLING {
  (void)x, (void)y, (void)n, (void)stream;
  for (;;) {
    void* block = nullptr;
    const hipError_t error = hipMalloc(&block, size_t{1} << 30);
    if (error != hipSuccess) return error;
  }
}
