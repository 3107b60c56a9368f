// Keeps a workspace between calls, as large as any shape has needed, and works in it.
// passes: correctness perf
#include "softmax.h"

ENTRY {
  static float* workspace;
  static int64_t size;
  if (size < rows * cols) {
    size = rows * cols;
    (void)hipFree(workspace);
    if (hipError_t error = hipMalloc(&workspace, size * sizeof *workspace)) return error;
  }
  if (hipError_t error = honest(x, workspace, scale, rows, cols, stream)) return error;
  return hipMemcpyAsync(y, workspace, rows * cols * sizeof *y, hipMemcpyDeviceToDevice, stream);
}
