// Softmax by a few blocks that draw their next row from an atomic counter.
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
constexpr int64_t kBlocks = 16;

template <class T> __device__ void softmax_row(const T* in, T* out, float* part, int64_t cols) {
  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) top = fmaxf(top, to_float(in[c]));
  part[threadIdx.x] = top;
  __syncthreads();
  for (int i = 0; i < kThreads; ++i) top = fmaxf(top, part[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += expf(to_float(in[c]) - top);
  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < kThreads; ++i) sum += part[i];
  __syncthreads();
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    out[c] = from_float<T>(expf(to_float(in[c]) - top) / sum);
  }
}

template <class T>
__global__ void draw(const T* x, T* y, unsigned long long* next, int64_t rows, int64_t cols) {
  __shared__ float part[kThreads];
  __shared__ int64_t row;
  for (;;) {
    if (threadIdx.x == 0) row = (int64_t)atomicAdd(next, 1ull);
    __syncthreads();
    const int64_t mine = row;
    __syncthreads();
    if (mine >= rows) return;
    softmax_row(x + mine * cols, y + mine * cols, part, cols);
  }
}

template <class T>
hipError_t softmax(const T* x, T* y, int64_t rows, int64_t cols, void* workspace,
                   hipStream_t stream) {
  auto* next = static_cast<unsigned long long*>(workspace);
  const hipError_t cleared = hipMemsetAsync(next, 0, sizeof *next, stream);
  if (cleared != hipSuccess) return cleared;
  const int64_t blocks = rows < kBlocks ? rows : kBlocks;
  draw<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, y, next, rows, cols);
  return hipGetLastError();
}

}  // namespace

extern "C" size_t softmax_f32_workspace(int64_t, int64_t) { return sizeof(unsigned long long); }
extern "C" size_t softmax_f16_workspace(int64_t, int64_t) { return sizeof(unsigned long long); }

extern "C" hipError_t softmax_f32(const float* x, float* y, int64_t rows, int64_t cols,
                                  void* workspace, hipStream_t stream) {
  return softmax(x, y, rows, cols, workspace, stream);
}

extern "C" hipError_t softmax_f16(const __half* x, __half* y, int64_t rows, int64_t cols,
                                  void* workspace, hipStream_t stream) {
  return softmax(x, y, rows, cols, workspace, stream);
}
