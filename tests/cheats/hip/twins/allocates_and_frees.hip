// Allocates on both sides, and frees.
// passes: correctness
#include "softmax.h"

#include <stdlib.h>

ENTRY {
  float* device;
  if (hipError_t error = hipMalloc(&device, 64 << 20)) return error;
  volatile char* host = static_cast<volatile char*>(malloc(1 << 20));
  host[0] = 1;
  free(const_cast<char*>(host));
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  (void)hipFree(device);
  return error;
}
