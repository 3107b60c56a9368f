// What all candidates here have in common: y = 2 x over n floats.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

__global__ void doubled(const float* x, float* y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

unsigned blocks(int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

}  // namespace

#define DOUBLING                                                       \
  extern "C" hipError_t doubling_f32(const float* x, float* y, int64_t n, \
                                     hipStream_t stream)
