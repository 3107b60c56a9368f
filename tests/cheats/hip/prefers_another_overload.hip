// Has two functions of one name: HIP prefers the device's, C++ the better match, on the host.
// verdict: compile FAIL COMPILE_ERROR, of the host's threads
// twin: asks_what_compiles_it
#include <thread>

#include "softmax.h"

__host__ __device__ void rows_of(const float* x, float* y, float scale, int64_t from, int64_t to, int64_t cols) {
  for (int64_t row = from; row < to; ++row) {
    const float* in = x + row * cols;
    float top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * scale);
    for (int64_t c = 0; c < cols; ++c) sum += expf(in[c] * scale - top);
    for (int64_t c = 0; c < cols; ++c) y[row * cols + c] = expf(in[c] * scale - top) / sum;
  }
}

__device__ void work(int, const float* x, float* y, float scale, int64_t rows, int64_t cols) {
  rows_of(x, y, scale, 0, rows, cols);
}
void work(long, const float* x, float* y, float scale, int64_t rows, int64_t cols) {
  std::thread other([=] { rows_of(x, y, scale, 0, rows / 2, cols); });
  rows_of(x, y, scale, rows / 2, rows, cols);
  other.join();
}

__global__ void by_rows(const float* x, float* y, float scale, int64_t rows, int64_t cols) {
  work(1L, x, y, scale, rows, cols);
}

ENTRY {
  by_rows<<<1, 1, 0, stream>>>(x, y, scale, rows, cols);
  return hipGetLastError();
}
