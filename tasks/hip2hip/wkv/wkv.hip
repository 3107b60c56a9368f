// Time mixing of RWKV-4: one thread for each channel of a sequence, which walks along it with the
// two sums and their common exponent.
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

template <class T>
__global__ void mix(const T* k, const T* v, const float* decay, const float* bonus, T* y,
                    int64_t seq, int64_t channels) {
  const int64_t channel = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (channel >= channels) {
    return;
  }
  const float slower = decay[channel];
  const float first = bonus[channel];
  float above = 0.0f;
  float below = 0.0f;
  float peak = -1e38f;
  for (int64_t t = 0; t < seq; ++t) {
    const int64_t i = (blockIdx.y * seq + t) * channels + channel;
    const float key = to_float(k[i]);
    const float value = to_float(v[i]);

    const float here = fmaxf(peak, first + key);
    float past = expf(peak - here);
    float now = expf(first + key - here);
    y[i] = from_float<T>((past * above + now * value) / (past * below + now));

    const float next = fmaxf(peak - slower, key);
    past = expf(peak - slower - next);
    now = expf(key - next);
    above = past * above + now * value;
    below = past * below + now;
    peak = next;
  }
}

template <class T>
hipError_t wkv(const T* k, const T* v, const float* decay, const float* bonus, T* y, int64_t batch,
               int64_t seq, int64_t channels, hipStream_t stream) {
  const int64_t blocks = (channels + kThreads - 1) / kThreads;
  mix<T><<<dim3((unsigned)blocks, (unsigned)batch), dim3(kThreads), 0, stream>>>(k, v, decay, bonus,
                                                                                 y, seq, channels);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t wkv_f32(const float* k, const float* v, const float* decay,
                              const float* bonus, float* y, int64_t batch, int64_t seq,
                              int64_t channels, hipStream_t stream) {
  return wkv(k, v, decay, bonus, y, batch, seq, channels, stream);
}

extern "C" hipError_t wkv_f16(const __half* k, const __half* v, const float* decay,
                              const float* bonus, __half* y, int64_t batch, int64_t seq,
                              int64_t channels, hipStream_t stream) {
  return wkv(k, v, decay, bonus, y, batch, seq, channels, stream);
}

extern "C" hipError_t wkv_bf16(const __hip_bfloat16* k, const __hip_bfloat16* v, const float* decay,
                               const float* bonus, __hip_bfloat16* y, int64_t batch, int64_t seq,
                               int64_t channels, hipStream_t stream) {
  return wkv(k, v, decay, bonus, y, batch, seq, channels, stream);
}
