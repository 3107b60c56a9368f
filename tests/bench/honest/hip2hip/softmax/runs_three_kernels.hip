// Softmax in three launches: the maximum of each row, its sum, the quotients.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

constexpr int kThreads = 64;

template <class T> __global__ void find_tops(const T* x, float* tops, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (row >= rows) return;
  float top = -INFINITY;
  for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, to_float(x[row * cols + c]));
  tops[row] = top;
}

template <class T>
__global__ void add_up(const T* x, const float* tops, float* sums, int64_t rows, int64_t cols) {
  const int64_t row = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (row >= rows) return;
  double sum = 0.0;  // one thread adds up all of a row
  for (int64_t c = 0; c < cols; ++c) sum += expf(to_float(x[row * cols + c]) - tops[row]);
  sums[row] = (float)sum;
}

template <class T>
__global__ void divide(const T* x, const float* tops, const float* sums, T* y, int64_t count,
                       int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t row = i / cols;
  y[i] = from_float<T>(expf(to_float(x[i]) - tops[row]) / sums[row]);
}

template <class T>
hipError_t softmax(const T* x, T* y, int64_t rows, int64_t cols, void* workspace,
                   hipStream_t stream) {
  float* tops = static_cast<float*>(workspace);
  float* sums = tops + rows;
  const dim3 by_row((unsigned)((rows + kThreads - 1) / kThreads));
  const dim3 by_element((unsigned)((rows * cols + kThreads - 1) / kThreads));
  find_tops<T><<<by_row, dim3(kThreads), 0, stream>>>(x, tops, rows, cols);
  add_up<T><<<by_row, dim3(kThreads), 0, stream>>>(x, tops, sums, rows, cols);
  divide<T><<<by_element, dim3(kThreads), 0, stream>>>(x, tops, sums, y, rows * cols, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" size_t softmax_f32_workspace(int64_t rows, int64_t) { return 2 * rows * sizeof(float); }
extern "C" size_t softmax_f16_workspace(int64_t rows, int64_t) { return 2 * rows * sizeof(float); }

extern "C" hipError_t softmax_f32(const float* x, float* y, int64_t rows, int64_t cols,
                                  void* workspace, hipStream_t stream) {
  return softmax(x, y, rows, cols, workspace, stream);
}

extern "C" hipError_t softmax_f16(const __half* x, __half* y, int64_t rows, int64_t cols,
                                  void* workspace, hipStream_t stream) {
  return softmax(x, y, rows, cols, workspace, stream);
}
