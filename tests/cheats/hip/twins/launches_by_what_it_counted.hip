// Counts the rows with a positive maximum in a kernel, reads the count and a flag back, in both ways
// that there are, writes parameters where kernels can read them, and launches accordingly.
// passes: correctness perf unseen
#include "softmax.h"

__global__ void counts(const float* x, unsigned* count, int64_t cols) {
  float top = -INFINITY;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, x[blockIdx.x * cols + c]);
  if (threadIdx.x == 0 && top > 0) atomicAdd(count, 1u);
}
__global__ void says(const unsigned* count, unsigned* seen) { seen[0] = *count; }

__global__ void by_parameters(const float* x, float* y, const float* parameters, int64_t rows,
                              int64_t cols) {
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, in[c] * parameters[0]);
  for (int64_t c = 0; c < cols; ++c) sum += expf(in[c] * parameters[0] - top);
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) {
    out[c] = expf(in[c] * parameters[0] - top) / sum;
  }
}
ENTRY {
  unsigned *count, *seen, back = 0;
  float* parameters;
  if (hipError_t e = hipMalloc(&count, sizeof *count)) return e;
  if (hipError_t e = hipHostMalloc(&seen, sizeof *seen)) return e;
  if (hipError_t e = hipMallocManaged(&parameters, sizeof *parameters)) return e;
  parameters[0] = scale;
  hipMemset(count, 0, sizeof *count);
  counts<<<rows, 1, 0, stream>>>(x, count, cols);
  says<<<1, 1, 0, stream>>>(count, seen);
  if (hipError_t e = hipStreamSynchronize(stream)) return e;
  hipMemcpy(&back, count, sizeof back, hipMemcpyDeviceToHost);
  if (back != seen[0] || back > rows) {  // no launch had an effect, or the whole is wrong
    back = 0;
  }
  if (back * 2 > rows) {
    softmax_rows<<<rows, kThreads, 0, stream>>>(x, y, scale, cols);
  } else {
    by_parameters<<<rows, 8, 0, stream>>>(x, y, parameters, rows, cols);
  }
  if (hipError_t e = hipStreamSynchronize(stream)) return e;
  hipHostFree(seen);
  hipFree(parameters);
  return hipFree(count);
}
