// A linear layer with int8 weights: one block for each element of the output, whose products
// are summed by a tree in shared memory.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

__device__ float block_sum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

template <class T>
__global__ void gemv_elements(const T* x, const int8_t* w, const float* scale, const T* bias, T* y,
                              int64_t ins, int64_t outs) {
  __shared__ float scratch[kThreads];
  const int64_t out = blockIdx.x;
  const T* row = x + blockIdx.y * ins;
  const int8_t* channel = w + out * ins;
  float sum = 0.0f;
  for (int64_t in = threadIdx.x; in < ins; in += kThreads) {
    sum += to_float(row[in]) * (float)channel[in];
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    y[blockIdx.y * outs + out] = from_float<T>(sum * scale[out] + to_float(bias[out]));
  }
}

template <class T>
hipError_t gemv_int8(const T* x, const int8_t* w, const float* scale, const T* bias, T* y,
                     int64_t batch, int64_t ins, int64_t outs, hipStream_t stream) {
  gemv_elements<T><<<dim3((unsigned)outs, (unsigned)batch), dim3(kThreads), 0, stream>>>(
      x, w, scale, bias, y, ins, outs);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gemv_int8_f32(const float* x, const int8_t* w, const float* scale,
                                    const float* bias, float* y, int64_t batch, int64_t ins,
                                    int64_t outs, hipStream_t stream) {
  return gemv_int8(x, w, scale, bias, y, batch, ins, outs, stream);
}

extern "C" hipError_t gemv_int8_f16(const __half* x, const int8_t* w, const float* scale,
                                    const __half* bias, __half* y, int64_t batch, int64_t ins,
                                    int64_t outs, hipStream_t stream) {
  return gemv_int8(x, w, scale, bias, y, batch, ins, outs, stream);
}

extern "C" hipError_t gemv_int8_bf16(const __hip_bfloat16* x, const int8_t* w, const float* scale,
                                     const __hip_bfloat16* bias, __hip_bfloat16* y, int64_t batch,
                                     int64_t ins, int64_t outs, hipStream_t stream) {
  return gemv_int8(x, w, scale, bias, y, batch, ins, outs, stream);
}
