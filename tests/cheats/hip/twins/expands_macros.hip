// Puts names, texts and pragmas together as honest sources do, and asks for a header of HIP.
// passes: correctness
#include "softmax.h"
#include "paste.h"
#if __has_include(<hip/hip_fp16.h>)
#include <hip/hip_fp16.h>
#else
#error a header of HIP is not there
#endif

#define UNROLL(count) _Pragma(TEXT(unroll count))
#define NAMED(name) PASTE(name, _by_macro)

static float NAMED(total)(const float* values, int count) {
  float sum = 0;
  UNROLL(4)
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}
ENTRY {
  const float zeros[8] = {};
  if (NAMED(total)(zeros, 8) != __half2float(__float2half((float)0.0))) return hipErrorUnknown;
  return honest(x, y, scale, rows, cols, stream);
}
