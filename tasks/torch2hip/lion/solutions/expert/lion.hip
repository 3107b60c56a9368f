// One step of the optimiser Lion, its gradient clipped by the norm, in two passes.
//
// The first pass adds up squares of the gradient, kParts blocks with a part of the sum each. The
// parts are added up in the same order in every call, so that equal calls give equal bits: by a
// block of their own where there is much to update, by every block of the second pass where
// another launch would take longer. A thread moves packs of four elements, 16 bytes in float32;
// what is left after the last whole pack is updated one by one. If a pointer is not aligned, all
// elements are.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWave = 32;     // lanes that reduce by shuffles, also in waves of 64
constexpr int kParts = 1024;  // blocks of the first pass: about as many as run at once
constexpr int kItems = 1;     // packs of a thread of the second pass
constexpr int kFew = 2048;    // blocks of the second pass that add up the parts themselves

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// The word that has so many bytes.
template <int kBytes> struct Word;
template <> struct Word<1> { using Type = uint8_t; };
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint64_t; };
template <> struct Word<16> { using Type = uint4; };

// Elements that are moved as one word: a compiler may cut a copy of the elements into pieces.
template <class T, int kPack> union Pack {
  typename Word<kPack * sizeof(T)>::Type bits;
  T v[kPack];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

// The sum of the block's values, for all its threads.
__device__ double block_sum(double value) {
  __shared__ double scratch[kThreads / kWave];
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    value += __shfl_xor(value, distance, kWave);
  }
  if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
  __syncthreads();
  double sum = 0.0;
#pragma unroll
  for (int w = 0; w < kThreads / kWave; ++w) sum += scratch[w];
  return sum;
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads, 8) void add_squares(const T* __restrict__ grad,
                                                           double* __restrict__ parts, int64_t n) {
  constexpr int kAhead = 8 / sizeof(T);  // packs that a thread requests at once
  constexpr int64_t kStride = (int64_t)kParts * kThreads;
  const int64_t packs = n / kPack, first = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  float sums[kAhead] = {};  // float32 does for the few hundred squares of a thread
  for (int64_t i = first; i < packs; i += kAhead * kStride) {
    Pack<T, kPack> pack[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      pack[u].bits = {};
      if (i + u * kStride < packs) pack[u] = read<T, kPack>(grad + (i + u * kStride) * kPack);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float v = to_float(pack[u].v[j]);
        sums[u] = fmaf(v, v, sums[u]);
      }
    }
  }
  double sum = 0.0;
#pragma unroll
  for (int u = 0; u < kAhead; ++u) sum += sums[u];
  const int64_t left = packs * kPack + first;
  if (left < n) sum += (double)to_float(grad[left]) * to_float(grad[left]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

struct Rates {
  float lr, beta1, beta2, decay;
};

// The factor that limits the gradient's norm, for all threads of the block.
__device__ float clip_of(const double* __restrict__ parts, const float* __restrict__ limit) {
  double some = 0.0;
#pragma unroll
  for (int i = 0; i < kParts / kThreads; ++i) some += parts[i * kThreads + threadIdx.x];
  const float norm = (float)sqrt(block_sum(some));
  return fminf(1.0f, limit[0] / (norm + 1e-6f));
}

__global__ __launch_bounds__(kThreads) void add_parts(const double* __restrict__ parts,
                                                      const float* __restrict__ limit,
                                                      float* __restrict__ known) {
  const float clip = clip_of(parts, limit);
  if (threadIdx.x == 0) known[0] = clip;
}

template <class T, int kPack, bool kKnown>
__global__ __launch_bounds__(kThreads) void update(
    const T* __restrict__ grad, const float* __restrict__ param, const float* __restrict__ m,
    const float* __restrict__ limit, const double* __restrict__ parts,
    const float* __restrict__ known, T* __restrict__ weight, float* __restrict__ param_new,
    float* __restrict__ m_new, Rates rates, int64_t n) {
  const int64_t packs = n / kPack;
  const float clip = kKnown ? known[0] : clip_of(parts, limit);

  const auto one = [&](float g, float param, float m, float& param_new, float& m_new) {
    g *= clip;
    const float c = rates.beta1 * m + (1.0f - rates.beta1) * g;
    const float sign = c > 0.0f ? 1.0f : c < 0.0f ? -1.0f : 0.0f;
    param_new = param - rates.lr * (sign + rates.decay * param);
    m_new = rates.beta2 * m + (1.0f - rates.beta2) * g;
  };

  const int64_t left = packs * kPack + threadIdx.x;
  if (kPack > 1 && blockIdx.x == 0 && left < n) {
    float p, v;
    one(to_float(grad[left]), param[left], m[left], p, v);
    weight[left] = from_float<T>(p);
    param_new[left] = p;
    m_new[left] = v;
  }
  const int64_t first = (int64_t)blockIdx.x * (kThreads * kItems) + threadIdx.x;
  Pack<T, kPack> g[kItems];
  Pack<float, kPack> p[kItems], v[kItems];
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    const int64_t at = (first + u * kThreads) * kPack;
    if (at >= packs * kPack) continue;
    g[u] = read<T, kPack>(grad + at);
    p[u] = read<float, kPack>(param + at);
    v[u] = read<float, kPack>(m + at);
  }
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    const int64_t at = (first + u * kThreads) * kPack;
    if (at >= packs * kPack) continue;
    Pack<T, kPack> w;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      one(to_float(g[u].v[j]), p[u].v[j], v[u].v[j], p[u].v[j], v[u].v[j]);
      w.v[j] = from_float<T>(p[u].v[j]);
    }
    write<T, kPack>(weight + at, w);
    write<float, kPack>(param_new + at, p[u]);
    write<float, kPack>(m_new + at, v[u]);
  }
}

template <class T, int kPack>
void launch(const T* grad, const float* param, const float* m, const float* limit, T* weight,
            float* param_new, float* m_new, Rates rates, int64_t n, double* parts,
            hipStream_t stream) {
  constexpr int kStep = kThreads * kItems;
  const int64_t blocks = (n / kPack + kStep - 1) / kStep;
  const dim3 grid((unsigned)(blocks < 1 ? 1 : blocks)), block(kThreads);
  float* known = (float*)(parts + kParts);
  add_squares<T, kPack><<<dim3(kParts), block, 0, stream>>>(grad, parts, n);
  if (blocks <= kFew) {
    update<T, kPack, false><<<grid, block, 0, stream>>>(grad, param, m, limit, parts, known, weight,
                                                        param_new, m_new, rates, n);
    return;
  }
  add_parts<<<dim3(1), block, 0, stream>>>(parts, limit, known);
  update<T, kPack, true><<<grid, block, 0, stream>>>(grad, param, m, limit, parts, known, weight,
                                                     param_new, m_new, rates, n);
}

template <class T>
hipError_t lion(const T* grad, const float* param, const float* m, const float* limit, T* weight,
                float* param_new, float* m_new, float lr, float beta1, float beta2, float decay,
                int64_t n, void* workspace, hipStream_t stream) {
  const Rates rates = {lr, beta1, beta2, decay};
  double* parts = (double*)workspace;
  const uintptr_t places = (uintptr_t)grad | (uintptr_t)param | (uintptr_t)m | (uintptr_t)weight |
                           (uintptr_t)param_new | (uintptr_t)m_new;
  if (places % 16 == 0) {
    launch<T, 4>(grad, param, m, limit, weight, param_new, m_new, rates, n, parts, stream);
  } else {
    launch<T, 1>(grad, param, m, limit, weight, param_new, m_new, rates, n, parts, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" size_t lion_f32_workspace(int64_t n) {
  return (kParts + 1) * sizeof(double);
}

extern "C" hipError_t lion_f32(const float* grad, const float* param, const float* m,
                               const float* limit, float* weight, float* param_new, float* m_new,
                               float lr, float beta1, float beta2, float decay, int64_t n,
                               void* workspace, hipStream_t stream) {
  return lion(grad, param, m, limit, weight, param_new, m_new, lr, beta1, beta2, decay, n,
              workspace, stream);
}

extern "C" size_t lion_f16_workspace(int64_t n) {
  return (kParts + 1) * sizeof(double);
}

extern "C" hipError_t lion_f16(const __half* grad, const float* param, const float* m,
                               const float* limit, __half* weight, float* param_new, float* m_new,
                               float lr, float beta1, float beta2, float decay, int64_t n,
                               void* workspace, hipStream_t stream) {
  return lion(grad, param, m, limit, weight, param_new, m_new, lr, beta1, beta2, decay, n,
              workspace, stream);
}

extern "C" size_t lion_bf16_workspace(int64_t n) {
  return (kParts + 1) * sizeof(double);
}

extern "C" hipError_t lion_bf16(const __hip_bfloat16* grad, const float* param, const float* m,
                                const float* limit, __hip_bfloat16* weight, float* param_new,
                                float* m_new, float lr, float beta1, float beta2, float decay,
                                int64_t n, void* workspace, hipStream_t stream) {
  return lion(grad, param, m, limit, weight, param_new, m_new, lr, beta1, beta2, decay, n,
              workspace, stream);
}
