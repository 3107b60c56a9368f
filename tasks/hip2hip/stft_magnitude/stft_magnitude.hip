// Magnitudes of short Fourier transforms: one block a frame, ten radix-2 steps in shared memory
// (Stockham's order, which needs no reversal of bits).
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <math.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

constexpr int kSize = 1024;
constexpr int kHop = 256;
constexpr int kBins = kSize / 2 + 1;
constexpr int kThreads = 256;
constexpr float kPi = 3.14159265358979f;

template <class T>
__global__ void transform(const T* x, const float* window, float* y, int64_t frames) {
  __shared__ float real[2][kSize];
  __shared__ float imaginary[2][kSize];
  const int64_t frame = blockIdx.x;
  const T* samples = x + (int64_t)blockIdx.y * (frames + 3) * kHop + frame * kHop;
  for (int i = threadIdx.x; i < kSize; i += kThreads) {
    real[0][i] = to_float(samples[i]) * window[i];
    imaginary[0][i] = 0.0f;
  }
  __syncthreads();
  int from = 0;
  for (int done = 1; done < kSize; done *= 2) {
    const int to = 1 - from;
    for (int i = threadIdx.x; i < kSize / 2; i += kThreads) {
      const int k = i % done;
      const float angle = -kPi * (float)k / (float)done;
      const float c = cosf(angle);
      const float s = sinf(angle);
      const float a = real[from][i + kSize / 2];
      const float b = imaginary[from][i + kSize / 2];
      const float turned_real = a * c - b * s;
      const float turned_imaginary = a * s + b * c;
      const int place = i / done * 2 * done + k;
      real[to][place] = real[from][i] + turned_real;
      imaginary[to][place] = imaginary[from][i] + turned_imaginary;
      real[to][place + done] = real[from][i] - turned_real;
      imaginary[to][place + done] = imaginary[from][i] - turned_imaginary;
    }
    __syncthreads();
    from = to;
  }
  float* own = y + ((int64_t)blockIdx.y * frames + frame) * kBins;
  for (int k = threadIdx.x; k < kBins; k += kThreads) {
    const float a = real[from][k];
    const float b = imaginary[from][k];
    own[k] = sqrtf(a * a + b * b + 1e-9f);
  }
}

template <class T>
hipError_t stft_magnitude(const T* x, const float* window, float* y, int64_t batch, int64_t frames,
                          hipStream_t stream) {
  transform<T><<<dim3((unsigned)frames, (unsigned)batch), dim3(kThreads), 0, stream>>>(x, window, y,
                                                                                       frames);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t stft_magnitude_f32(const float* x, const float* window, float* y,
                                         int64_t batch, int64_t frames, hipStream_t stream) {
  return stft_magnitude(x, window, y, batch, frames, stream);
}

extern "C" hipError_t stft_magnitude_f16(const __half* x, const float* window, float* y,
                                         int64_t batch, int64_t frames, hipStream_t stream) {
  return stft_magnitude(x, window, y, batch, frames, stream);
}
