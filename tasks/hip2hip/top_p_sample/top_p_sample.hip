// Draws from nuclei: one block a row. The threshold of the nucleus is found by a search over the
// bits of float32, three of them in each pass over the row; the draw walks along threads' sums.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

constexpr int kThreads = 64;
constexpr int kThresholds = 7;  // that are tried in one pass

__device__ uint64_t mixed(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  return bits ^ (bits >> 31);
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

__device__ float block_max(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

// What a column weighs: 1 for the likeliest.
__device__ float weight_of(float logit, float largest, float temperature) {
  return expf((logit - largest) / temperature);
}

template <class T>
__global__ void draw(const T* logits, const int64_t* seed, int32_t* token, float temperature,
                     float top_p, int64_t vocab) {
  __shared__ float scratch[kThreads];
  __shared__ float sums[kThresholds][kThreads + 1];
  const int64_t row = blockIdx.x;
  const T* in = logits + row * vocab;

  float largest = -INFINITY;
  for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
    largest = fmaxf(largest, to_float(in[col]));
  }
  largest = block_max(largest, scratch);
  float total = 0.0f;
  for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
    total += weight_of(to_float(in[col]), largest, temperature);
  }
  const float wanted = top_p * block_sum(total, scratch);

  // The least threshold such that all that weighs more sums up to less than is wanted.
  uint32_t below = 0;
  uint32_t enough = top_p < 1.0f ? __float_as_uint(1.0f) : 0;
  while (below < enough) {
    const uint32_t step = (enough - below) / (kThresholds + 1) + 1;
    float above[kThresholds] = {};
    for (int64_t col = threadIdx.x; col < vocab; col += kThreads) {
      const float weight = weight_of(to_float(in[col]), largest, temperature);
      for (int i = 0; i < kThresholds; ++i) {
        above[i] += weight > __uint_as_float(below + i * step) ? weight : 0.0f;
      }
    }
    for (int i = 0; i < kThresholds; ++i) {
      sums[i][threadIdx.x] = above[i];
    }
    __syncthreads();
    if (threadIdx.x < kThresholds) {
      float all = 0.0f;
      for (int i = 0; i < kThreads; ++i) {
        all += sums[threadIdx.x][i];
      }
      scratch[threadIdx.x] = all;
    }
    __syncthreads();
    uint32_t next = below;
    for (int i = 0; i < kThresholds; ++i) {
      if (scratch[i] < wanted) {
        enough = below + i * step < enough ? below + i * step : enough;
        break;
      }
      next = below + i * step + 1;
    }
    below = next < enough ? next : enough;
    __syncthreads();
  }
  const float threshold = __uint_as_float(enough);

  // Each thread has a run of columns; the one in whose run the draw falls walks along it.
  const int64_t share = (vocab + kThreads - 1) / kThreads;
  const int64_t first = threadIdx.x * share;
  const int64_t last = first + share < vocab ? first + share : vocab;
  float own = 0.0f;
  for (int64_t col = first; col < last; ++col) {
    const float weight = weight_of(to_float(in[col]), largest, temperature);
    own += weight >= threshold ? weight : 0.0f;
  }
  const float nucleus = block_sum(own, scratch);
  scratch[threadIdx.x] = own;
  __syncthreads();
  const uint64_t bits = mixed(mixed((uint64_t)seed[0]) + (uint64_t)row * 0x9E3779B97F4A7C15ull);
  float left = ((float)(uint32_t)(bits >> 40) + 0.5f) * 5.9604644775390625e-8f * nucleus;
  if (threadIdx.x == 0) {
    int run = 0;
    int likely = 0;
    for (int i = 0; i < kThreads; ++i) {
      likely = scratch[i] > 0.0f ? i : likely;
    }
    while (run < likely && left >= scratch[run]) {
      left -= scratch[run];
      ++run;
    }
    int32_t found = 0;
    const int64_t end = (run + 1) * share < vocab ? (run + 1) * share : vocab;
    for (int64_t col = run * share; col < end; ++col) {
      const float weight = weight_of(to_float(in[col]), largest, temperature);
      if (weight >= threshold) {
        found = (int32_t)col;
        if (left < weight) {
          break;
        }
        left -= weight;
      }
    }
    token[row] = found;
  }
}

template <class T>
hipError_t top_p_sample(const T* logits, const int64_t* seed, int32_t* token, float temperature,
                        float top_p, int64_t rows, int64_t vocab, hipStream_t stream) {
  draw<T><<<dim3((unsigned)rows), dim3(kThreads), 0, stream>>>(logits, seed, token, temperature,
                                                               top_p, vocab);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t top_p_sample_f32(const float* logits, const int64_t* seed, int32_t* token,
                                       float temperature, float top_p, int64_t rows, int64_t vocab,
                                       hipStream_t stream) {
  return top_p_sample(logits, seed, token, temperature, top_p, rows, vocab, stream);
}

extern "C" hipError_t top_p_sample_f16(const __half* logits, const int64_t* seed, int32_t* token,
                                       float temperature, float top_p, int64_t rows, int64_t vocab,
                                       hipStream_t stream) {
  return top_p_sample(logits, seed, token, temperature, top_p, rows, vocab, stream);
}

extern "C" hipError_t top_p_sample_bf16(const __hip_bfloat16* logits, const int64_t* seed,
                                        int32_t* token, float temperature, float top_p,
                                        int64_t rows, int64_t vocab, hipStream_t stream) {
  return top_p_sample(logits, seed, token, temperature, top_p, rows, vocab, stream);
}
