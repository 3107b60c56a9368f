// A transposed convolution: one thread for each element of y, which sums up the two positions of
// x that reach it, over all channels.
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

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

template <class T>
__global__ void convolve(const T* x, const T* weight, const T* bias, T* y, int64_t total,
                         int64_t channels, int64_t filters, int64_t length, int64_t stride) {
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t time = i % (length * stride) + stride / 2;
    const int64_t filter = i / (length * stride) % filters;
    const int64_t sequence = i / (length * stride * filters);
    float sum = to_float(bias[filter]);
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t back = 0; back < 2; ++back) {
        const int64_t source = time / stride - back;
        if (source < 0 || source >= length) {
          continue;
        }
        const int64_t tap = time - source * stride;
        const float value = to_float(x[(sequence * channels + channel) * length + source]);
        const float active = value > 0.0f ? value : 0.1f * value;
        sum += active * to_float(weight[(channel * filters + filter) * 2 * stride + tap]);
      }
    }
    y[i] = from_float<T>(sum);
  }
}

template <class T>
hipError_t conv_transpose1d(const T* x, const T* weight, const T* bias, T* y, int64_t batch,
                            int64_t channels, int64_t filters, int64_t length, int64_t stride,
                            hipStream_t stream) {
  const int64_t total = batch * filters * length * stride;
  const int64_t wanted = (total + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  convolve<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(
      x, weight, bias, y, total, channels, filters, length, stride);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t conv_transpose1d_f32(const float* x, const float* weight, const float* bias,
                                           float* y, int64_t batch, int64_t channels,
                                           int64_t filters, int64_t length, int64_t stride,
                                           hipStream_t stream) {
  return conv_transpose1d(x, weight, bias, y, batch, channels, filters, length, stride, stream);
}

extern "C" hipError_t conv_transpose1d_f16(const __half* x, const __half* weight,
                                           const __half* bias, __half* y, int64_t batch,
                                           int64_t channels, int64_t filters, int64_t length,
                                           int64_t stride, hipStream_t stream) {
  return conv_transpose1d(x, weight, bias, y, batch, channels, filters, length, stride, stream);
}

extern "C" hipError_t conv_transpose1d_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                            const __hip_bfloat16* bias, __hip_bfloat16* y,
                                            int64_t batch, int64_t channels, int64_t filters,
                                            int64_t length, int64_t stride, hipStream_t stream) {
  return conv_transpose1d(x, weight, bias, y, batch, channels, filters, length, stride, stream);
}
