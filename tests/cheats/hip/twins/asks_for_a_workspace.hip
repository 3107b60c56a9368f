// Has the judge provide a workspace.
// passes: correctness
#include "softmax.h"

extern "C" int64_t softmax_f32_workspace(int64_t rows, int64_t cols) { return 4 * rows * cols; }
extern "C" hipError_t softmax_f32(const float* x, float* y, float scale, int64_t rows, int64_t cols,
                                  float* workspace, hipStream_t stream) {
  if (hipError_t error = honest(x, workspace, scale, rows, cols, stream)) return error;
  return hipMemcpyAsync(y, workspace, rows * cols * sizeof *y, hipMemcpyDeviceToDevice, stream);
}
