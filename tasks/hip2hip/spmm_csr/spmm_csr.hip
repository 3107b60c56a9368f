// A sparse matrix in compressed rows times features: one block a row, one thread a feature, which
// walks over the row's entries.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

constexpr int kThreads = 128;
constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void multiply(const int32_t* begin, const int32_t* column, const float* weight,
                         const T* x, T* y, int64_t nodes, int64_t features) {
  for (int64_t row = blockIdx.x; row < nodes; row += gridDim.x) {
    for (int64_t feature = threadIdx.x; feature < features; feature += kThreads) {
      float sum = 0.0f;
      for (int32_t edge = begin[row]; edge < begin[row + 1]; ++edge) {
        sum += weight[edge] * to_float(x[column[edge] * features + feature]);
      }
      y[row * features + feature] = from_float<T>(sum);
    }
  }
}

template <class T>
hipError_t spmm_csr(const int32_t* begin, const int32_t* column, const float* weight, const T* x,
                    T* y, int64_t nodes, int64_t edges, int64_t features, hipStream_t stream) {
  const int64_t blocks = nodes < kMaxBlocks ? nodes : kMaxBlocks;
  multiply<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(begin, column, weight, x, y,
                                                                     nodes, features);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t spmm_csr_f32(const int32_t* begin, const int32_t* column, const float* weight,
                                   const float* x, float* y, int64_t nodes, int64_t edges,
                                   int64_t features, hipStream_t stream) {
  return spmm_csr(begin, column, weight, x, y, nodes, edges, features, stream);
}

extern "C" hipError_t spmm_csr_f16(const int32_t* begin, const int32_t* column, const float* weight,
                                   const __half* x, __half* y, int64_t nodes, int64_t edges,
                                   int64_t features, hipStream_t stream) {
  return spmm_csr(begin, column, weight, x, y, nodes, edges, features, stream);
}

extern "C" hipError_t spmm_csr_bf16(const int32_t* begin, const int32_t* column,
                                    const float* weight, const __hip_bfloat16* x, __hip_bfloat16* y,
                                    int64_t nodes, int64_t edges, int64_t features,
                                    hipStream_t stream) {
  return spmm_csr(begin, column, weight, x, y, nodes, edges, features, stream);
}
