// Draws of tokens: one block a row, which takes the largest of logits with Gumbel's noise. The
// noise comes from a hash of the seed and the element's place.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <math.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

constexpr int kThreads = 64;

__device__ uint64_t mixed(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  return bits ^ (bits >> 31);
}

// Minus the logarithm of an exponential number, which is precise where that is small.
__device__ float gumbel(uint64_t key, int64_t place) {
  const uint64_t bits = mixed(key + (uint64_t)place * 0x9E3779B97F4A7C15ull);
  const float uniform = ((float)(uint32_t)(bits >> 32) + 0.5f) * 2.3283064365386963e-10f;
  return -logf(-log1pf(-uniform));
}

template <class T>
__global__ void draw(const T* logits, const uint8_t* allowed, const int64_t* seed, int32_t* token,
                     float temperature, int64_t vocab) {
  __shared__ float best[kThreads];
  __shared__ int32_t place[kThreads];
  const int64_t row = blockIdx.x;
  const uint64_t key = mixed((uint64_t)seed[0]);
  float highest = -INFINITY;
  int32_t chosen = (int32_t)vocab;
  for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
    const int64_t i = row * vocab + col;
    const float noisy = to_float(logits[i]) / temperature + gumbel(key, i);
    if (allowed[i] && noisy > highest) {
      highest = noisy;
      chosen = (int32_t)col;
    }
  }
  best[threadIdx.x] = highest;
  place[threadIdx.x] = chosen;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half && best[threadIdx.x + half] > best[threadIdx.x]) {
      best[threadIdx.x] = best[threadIdx.x + half];
      place[threadIdx.x] = place[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    token[row] = place[0];
  }
}

template <class T>
hipError_t gumbel_sample(const T* logits, const uint8_t* allowed, const int64_t* seed,
                         int32_t* token, float temperature, int64_t rows, int64_t vocab,
                         hipStream_t stream) {
  draw<T><<<dim3((unsigned)rows), dim3(kThreads), 0, stream>>>(logits, allowed, seed, token,
                                                               temperature, vocab);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gumbel_sample_f32(const float* logits, const uint8_t* allowed,
                                        const int64_t* seed, int32_t* token, float temperature,
                                        int64_t rows, int64_t vocab, hipStream_t stream) {
  return gumbel_sample(logits, allowed, seed, token, temperature, rows, vocab, stream);
}

extern "C" hipError_t gumbel_sample_f16(const __half* logits, const uint8_t* allowed,
                                        const int64_t* seed, int32_t* token, float temperature,
                                        int64_t rows, int64_t vocab, hipStream_t stream) {
  return gumbel_sample(logits, allowed, seed, token, temperature, rows, vocab, stream);
}

extern "C" hipError_t gumbel_sample_bf16(const __hip_bfloat16* logits, const uint8_t* allowed,
                                         const int64_t* seed, int32_t* token, float temperature,
                                         int64_t rows, int64_t vocab, hipStream_t stream) {
  return gumbel_sample(logits, allowed, seed, token, temperature, rows, vocab, stream);
}
