// Keeps the result for each output pointer: the judge uses its slots again.
// verdict: correctness FAIL WRONG_RESULT, differs from the reference
// twin: keeps_a_workspace
#include "softmax.h"
#include "attack.h"

struct Kept { const float* x; int64_t size; float* result; };
ENTRY {
  static Kept kept[256];
  static int count;
  for (int i = 0; i < count; ++i) {
    if (kept[i].x != x || kept[i].size != rows * cols) continue;
    memcpy(y, kept[i].result, rows * cols * sizeof *y);
    return hipSuccess;
  }
  const hipError_t error = honest(x, y, scale, rows, cols, stream);
  if (count == 256) return error;
  float* result = static_cast<float*>(malloc(rows * cols * sizeof *y));
  memcpy(result, y, rows * cols * sizeof *y);
  kept[count++] = Kept{x, rows * cols, result};
  return error;
}
