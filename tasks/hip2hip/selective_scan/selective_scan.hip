// The recurrence of a Mamba layer: one thread a channel, which walks along the sequence with all
// states in its registers.
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

constexpr int kThreads = 64;
constexpr int kMaxStates = 32;

template <class T>
__global__ void scan(const T* x, const T* dt, const T* z, const float* rate, const T* b, const T* c,
                     const float* bias, const float* d, T* y, float* last, int64_t channels,
                     int64_t seq, int64_t states) {
  const int64_t channel = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t sequence = blockIdx.y;
  if (channel >= channels) {
    return;
  }
  const int64_t row = (sequence * channels + channel) * seq;
  float h[kMaxStates];
  for (int s = 0; s < kMaxStates; ++s) {
    h[s] = 0.0f;
  }
  for (int64_t t = 0; t < seq; ++t) {
    const float value = to_float(x[row + t]);
    const float u = to_float(dt[row + t]) + bias[channel];
    const float step = fmaxf(u, 0.0f) + log1pf(expf(-fabsf(u)));
    float sum = d[channel] * value;
    for (int64_t s = 0; s < states; ++s) {
      const int64_t shared = (sequence * states + s) * seq + t;
      const float kept = expf(-step * fabsf(rate[channel * states + s]));
      h[s] = kept * h[s] + step * value * to_float(b[shared]);
      sum += to_float(c[shared]) * h[s];
    }
    const float gate = to_float(z[row + t]);
    y[row + t] = from_float<T>(sum * gate / (1.0f + expf(-gate)));
  }
  for (int64_t s = 0; s < states; ++s) {
    last[(sequence * channels + channel) * states + s] = h[s];
  }
}

template <class T>
hipError_t selective_scan(const T* x, const T* dt, const T* z, const float* rate, const T* b,
                          const T* c, const float* bias, const float* d, T* y, float* last,
                          int64_t batch, int64_t channels, int64_t seq, int64_t states,
                          hipStream_t stream) {
  const int64_t blocks = (channels + kThreads - 1) / kThreads;
  scan<T><<<dim3((unsigned)blocks, (unsigned)batch), dim3(kThreads), 0, stream>>>(
      x, dt, z, rate, b, c, bias, d, y, last, channels, seq, states);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t selective_scan_f32(const float* x, const float* dt, const float* z,
                                         const float* rate, const float* b, const float* c,
                                         const float* bias, const float* d, float* y, float* last,
                                         int64_t batch, int64_t channels, int64_t seq,
                                         int64_t states, hipStream_t stream) {
  return selective_scan(x, dt, z, rate, b, c, bias, d, y, last, batch, channels, seq, states,
                        stream);
}

extern "C" hipError_t selective_scan_f16(const __half* x, const __half* dt, const __half* z,
                                         const float* rate, const __half* b, const __half* c,
                                         const float* bias, const float* d, __half* y, float* last,
                                         int64_t batch, int64_t channels, int64_t seq,
                                         int64_t states, hipStream_t stream) {
  return selective_scan(x, dt, z, rate, b, c, bias, d, y, last, batch, channels, seq, states,
                        stream);
}

extern "C" hipError_t selective_scan_bf16(const __hip_bfloat16* x, const __hip_bfloat16* dt,
                                          const __hip_bfloat16* z, const float* rate,
                                          const __hip_bfloat16* b, const __hip_bfloat16* c,
                                          const float* bias, const float* d, __hip_bfloat16* y,
                                          float* last, int64_t batch, int64_t channels, int64_t seq,
                                          int64_t states, hipStream_t stream) {
  return selective_scan(x, dt, z, rate, b, c, bias, d, y, last, batch, channels, seq, states,
                        stream);
}
