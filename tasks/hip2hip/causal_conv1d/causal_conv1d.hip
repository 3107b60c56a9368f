// Causal convolution of each channel and SiLU: one thread for each element of the output, which
// loads all of its taps.
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

constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void convolve(const T* x, const T* weight, const T* bias, T* y, int64_t total,
                         int64_t channels, int64_t seq, int64_t width) {
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t time = i % seq;
    const int64_t channel = i / seq % channels;
    float z = to_float(bias[channel]);
    for (int64_t tap = 0; tap < width; ++tap) {
      const int64_t back = width - 1 - tap;
      if (time >= back) {
        z += to_float(weight[channel * width + tap]) * to_float(x[i - back]);
      }
    }
    y[i] = from_float<T>(z / (1.0f + expf(-z)));
  }
}

template <class T>
hipError_t causal_conv1d(const T* x, const T* weight, const T* bias, T* y, int64_t batch,
                         int64_t channels, int64_t seq, int64_t width, hipStream_t stream) {
  const int64_t total = batch * channels * seq;
  const int64_t wanted = (total + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  convolve<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, weight, bias, y, total,
                                                                     channels, seq, width);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t causal_conv1d_f32(const float* x, const float* weight, const float* bias,
                                        float* y, int64_t batch, int64_t channels, int64_t seq,
                                        int64_t width, hipStream_t stream) {
  return causal_conv1d(x, weight, bias, y, batch, channels, seq, width, stream);
}

extern "C" hipError_t causal_conv1d_f16(const __half* x, const __half* weight, const __half* bias,
                                        __half* y, int64_t batch, int64_t channels, int64_t seq,
                                        int64_t width, hipStream_t stream) {
  return causal_conv1d(x, weight, bias, y, batch, channels, seq, width, stream);
}

extern "C" hipError_t causal_conv1d_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                         const __hip_bfloat16* bias, __hip_bfloat16* y,
                                         int64_t batch, int64_t channels, int64_t seq,
                                         int64_t width, hipStream_t stream) {
  return causal_conv1d(x, weight, bias, y, batch, channels, seq, width, stream);
}
