// A linear layer with MXFP4 weights: one block for each element of the output. Each thread decodes
// bytes by a table in constant memory; the products are summed by a tree in shared memory.
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
constexpr int kBytesOfGroup = 16;

__constant__ float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                  -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

__device__ float block_sum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  return scratch[0];
}

template <class T>
__global__ void gemv_elements(const T* x, const uint8_t* packed, const uint8_t* scale,
                              const T* bias, T* y, int64_t groups, int64_t outs) {
  __shared__ float scratch[kThreads];
  const int64_t out = blockIdx.x;
  const T* row = x + blockIdx.y * 32 * groups;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < kBytesOfGroup * groups; i += kThreads) {
    const uint8_t pair = packed[out * kBytesOfGroup * groups + i];
    const float factor = ldexpf(1.0f, (int)scale[out * groups + i / kBytesOfGroup] - 127);
    const float low = kValues[pair & 15] * to_float(row[2 * i]);
    const float high = kValues[pair >> 4] * to_float(row[2 * i + 1]);
    sum += factor * (low + high);
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    y[blockIdx.y * outs + out] = from_float<T>(sum + to_float(bias[out]));
  }
}

template <class T>
hipError_t gemv_mxfp4(const T* x, const uint8_t* packed, const uint8_t* scale, const T* bias, T* y,
                      int64_t batch, int64_t groups, int64_t outs, hipStream_t stream) {
  gemv_elements<T><<<dim3((unsigned)outs, (unsigned)batch), dim3(kThreads), 0, stream>>>(
      x, packed, scale, bias, y, groups, outs);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gemv_mxfp4_bf16(const __hip_bfloat16* x, const uint8_t* packed,
                                      const uint8_t* scale, const __hip_bfloat16* bias,
                                      __hip_bfloat16* y, int64_t batch, int64_t groups,
                                      int64_t outs, hipStream_t stream) {
  return gemv_mxfp4(x, packed, scale, bias, y, batch, groups, outs, stream);
}

extern "C" hipError_t gemv_mxfp4_f16(const __half* x, const uint8_t* packed, const uint8_t* scale,
                                     const __half* bias, __half* y, int64_t batch, int64_t groups,
                                     int64_t outs, hipStream_t stream) {
  return gemv_mxfp4(x, packed, scale, bias, y, batch, groups, outs, stream);
}

extern "C" hipError_t gemv_mxfp4_f32(const float* x, const uint8_t* packed, const uint8_t* scale,
                                     const float* bias, float* y, int64_t batch, int64_t groups,
                                     int64_t outs, hipStream_t stream) {
  return gemv_mxfp4(x, packed, scale, bias, y, batch, groups, outs, stream);
}
