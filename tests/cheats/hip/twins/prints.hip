// Prints from the host and from the device.
// passes: correctness
#include "softmax.h"
#include <stdio.h>

__global__ void greet() {
  if (threadIdx.x == 0) printf("hello from block %d\n", int(blockIdx.x));
}
ENTRY {
  static bool greeted;
  if (!greeted) greet<<<2, 4, 0, stream>>>();
  greeted = true;
  fprintf(stderr, "%d x %d\n", int(rows), int(cols));
  return honest(x, y, scale, rows, cols, stream);
}
