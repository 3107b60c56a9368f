// Looks at its compiler's macros, and has functions of both sides, overloads and a thread of its host.
// passes: correctness
#include <thread>

#include "softmax.h"

#ifdef __HIPCC__
#define BOTH __host__ __device__
#else
#define BOTH
#endif

BOTH float scaled(float x, float by) { return x * by; }
BOTH double scaled(double x, double by) { return x * by; }

__global__ void scales(const float* x, float* y, float scale, int64_t count) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < count) y[i] = scaled(x[i], scale);
}

ENTRY {
  const int64_t count = rows * cols;
  hipError_t error = hipSuccess;
  std::thread helper([&] {
    scales<<<(count + 255) / 256, 256, 0, stream>>>(x, y, scale, count);
    error = hipGetLastError();
  });
  helper.join();
  if (error != hipSuccess) return error;
  return honest(x, y, scale, rows, cols, stream);
}
