// Cross-entropy and its gradient that read a row of logits from memory once: a block has the row in
// registers, 16 bytes at a time, and what does not fit there in shared memory, where each thread
// reads only what it has written. What fits in neither is read again. The row's largest logit comes
// first, then the sum relative to it, then the gradient.
//
// Packs lie on 16-byte boundaries whatever the alignment of the row; those at its ends go element
// by element. Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;  // lanes that reduce by shuffles, also in waves of 64
constexpr float kLog2e = 1.44269504f;
#ifdef __HIP_PLATFORM_NVIDIA__
constexpr int kShared = 100 << 10;  // bytes of shared memory for each of two blocks a processor
#else
constexpr int kShared = 16 << 10;
#endif

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// One element, or as many as 16 bytes hold. They are moved as `bits`: a compiler may cut a copy of
// the elements into pieces.
template <class T, int kPack> union Pack {
  uint4 bits;
  T v[kPack];
};
template <class T> union Pack<T, 1> {
  T bits;
  T v[1];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
#ifdef __HIP_PLATFORM_NVIDIA__
  if constexpr (sizeof(pack) == 16) {  // nvcc cuts a store that is written in C++ into four
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(pack.bits.x), "r"(pack.bits.y), "r"(pack.bits.z), "r"(pack.bits.w)
                 : "memory");
    return;
  }
#endif
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

__device__ float power_of_2(float v) {
#ifdef __HIP_PLATFORM_NVIDIA__
  float result;  // subnormal results count as zero, without the instructions that they take
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
  return result;
#else
  return exp2f(v);
#endif
}

// 16 bytes to shared memory, which have arrived after settle().
template <class P> __device__ void copy(P* to, const P* from) {
#ifdef __HIP_PLATFORM_NVIDIA__
  if constexpr (sizeof(P) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
    return;
  }
#endif
  to->bits = from->bits;
}

__device__ void settle() {
#ifdef __HIP_PLATFORM_NVIDIA__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

__device__ float add(float a, float b) { return a + b; }
__device__ float larger(float a, float b) { return fmaxf(a, b); }

template <int kThreads, float (*kOp)(float, float)>
__device__ float reduce(float value, float* scratch) {
  constexpr int kWaves = kThreads / kWave;
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    value = kOp(value, __shfl_xor(value, distance, kWave));
  }
  if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
  __syncthreads();
  value = scratch[threadIdx.x % kWaves];
#pragma unroll
  for (int distance = kWaves / 2; distance > 0; distance /= 2) {
    value = kOp(value, __shfl_xor(value, distance, kWave));
  }
  return value;
}

// A row in packs, of which the first may begin before it.
template <class T, int kPack, int kThreads, int kHeld> struct Row {
  const T* in;
  int lead, vocab, staged;
  bool last;  // nothing lies behind this row
  Pack<T, kPack>* shared;
  Pack<T, kPack> held[kHeld];

  __device__ int column(int pack) const { return pack * kPack - lead; }
  __device__ bool whole(int col) const { return col >= 0 && col + kPack <= vocab; }
  __device__ bool readable(int col) const { return !last || col + kPack <= vocab; }

  __device__ Pack<T, kPack> load(int col) const {
    Pack<T, kPack> pack;
    if (readable(col)) {
      pack = read<T, kPack>(in + col);
    } else {
      for (int j = 0; j < kPack; ++j) {
        if (col + j < vocab) pack.v[j] = in[col + j];
      }
    }
    return pack;
  }

  // All packs are requested before the first is looked at.
  __device__ void request() {
    for (int i = 0; i < staged; ++i) {
      const int at = i * kThreads + threadIdx.x, col = column(at + kHeld * kThreads);
      if (col >= vocab) break;
      if (readable(col)) {
        copy(shared + at, reinterpret_cast<const Pack<T, kPack>*>(in + col));
      } else {
        shared[at].bits = load(col).bits;
      }
    }
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int col = column(i * kThreads + threadIdx.x);
      if (col < vocab) held[i] = load(col);
    }
    settle();
  }

  // Calls f(column, pack) for each pack of this thread.
  template <class F> __device__ void each(F f) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int col = column(i * kThreads + threadIdx.x);
      if (col < vocab) f(col, held[i]);
    }
    for (int i = 0; i < staged; ++i) {
      const int at = i * kThreads + threadIdx.x, col = column(at + kHeld * kThreads);
      if (col >= vocab) return;
      f(col, shared[at]);
    }
    for (int i = kHeld + staged;; ++i) {
      const int col = column(i * kThreads + threadIdx.x);
      if (col >= vocab) return;
      f(col, load(col));
    }
  }

  // Calls f(value) for each element of this thread.
  template <class F> __device__ void each_value(F f) const {
    each([&](int col, const Pack<T, kPack>& pack) {
      if (whole(col)) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) f(to_float(pack.v[j]));
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          if ((unsigned)(col + j) < (unsigned)vocab) f(to_float(pack.v[j]));
        }
      }
    });
  }

  __device__ void write_at(T* out, int col, const Pack<T, kPack>& pack) const {
    if (whole(col)) {
      write<T, kPack>(out + col, pack);
      return;
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if ((unsigned)(col + j) < (unsigned)vocab) out[col + j] = pack.v[j];
    }
  }
};

template <class T, int kPack, int kThreads, int kHeld>
__global__ __launch_bounds__(kThreads) void loss_rows(
    const T* __restrict__ logits, const int64_t* __restrict__ target, float* __restrict__ loss,
    T* __restrict__ dlogits, float smoothing, float z, int64_t ignore_index, int64_t rows,
    int vocab, int staged) {
  extern __shared__ __align__(16) uint4 memory[];
  __shared__ float maxima[kWave], sums[kWave], distances[kWave];
  const int64_t row_index = blockIdx.x, chosen = target[row_index];
  Row<T, kPack, kThreads, kHeld> row;
  row.in = logits + row_index * vocab;
  row.lead = kPack > 1 ? (int)((uintptr_t)row.in % 16 / sizeof(T)) : 0;
  row.vocab = vocab;
  row.staged = staged;
  row.last = row_index == rows - 1;
  row.shared = reinterpret_cast<Pack<T, kPack>*>(memory);
  T* const out = dlogits + row_index * vocab;
  if (chosen == ignore_index) {
    Pack<T, kPack> zeros;
    for (int j = 0; j < kPack; ++j) zeros.v[j] = from_float<T>(0.0f);
    for (int i = threadIdx.x; row.column(i) < vocab; i += kThreads) {
      row.write_at(out, row.column(i), zeros);
    }
    if (threadIdx.x == 0) loss[row_index] = 0.0f;
    return;
  }

  row.request();
  float most = -INFINITY;
  row.each_value([&](float value) { most = fmaxf(most, value); });
  const float largest = reduce<kThreads, larger>(most, maxima);
  float some = 0.0f, below = 0.0f;
  row.each_value([&](float value) {
    const float distance = value - largest;
    some += power_of_2(distance * kLog2e);
    below += distance;
  });
  const float sum = reduce<kThreads, add>(some, sums);
  const float distance = reduce<kThreads, add>(below, distances) / (float)vocab;
  const float log_sum = logf(sum), lse = log_sum + largest;
  if (threadIdx.x == 0) {
    const float of_target = log_sum + (largest - to_float(row.in[chosen]));
    const float of_all = log_sum - distance;
    loss[row_index] = (1.0f - smoothing) * of_target + smoothing * of_all + z * lse * lse;
  }

  const float scale = (1.0f + 2.0f * z * lse) / sum, label = smoothing / (float)vocab;
  row.each([&](int col, const Pack<T, kPack>& pack) {
    float gradients[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float share = power_of_2((to_float(pack.v[j]) - largest) * kLog2e);
      gradients[j] = fmaf(share, scale, -label);
    }
    if (chosen >= col && chosen < col + kPack) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (chosen == col + j) gradients[j] -= 1.0f - smoothing;
      }
    }
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) result.v[j] = from_float<T>(gradients[j]);
    row.write_at(out, col, result);
  });
}

template <class T, int kPack>
void by_length(const T* logits, const int64_t* target, float* loss, T* dlogits, float smoothing,
               float z, int64_t ignore_index, int64_t rows, int vocab, hipStream_t stream) {
  const int packs = (vocab + kPack - 1 + kPack - 1) / kPack;  // with the widest lead
  // `bytes` of shared memory are there for what is not in registers.
  const auto start = [&](auto kernel, int threads, int held, int bytes) {
    const int line = threads * (int)sizeof(Pack<T, kPack>);  // bytes of a pack for each thread
    const int left = (packs + threads - 1) / threads - held;
    const int staged = left < 0 ? 0 : left < bytes / line ? left : bytes / line;
    if (staged * line > 32 << 10) {
      (void)hipFuncSetAttribute((const void*)kernel, hipFuncAttributeMaxDynamicSharedMemorySize,
                                staged * line);
    }
    kernel<<<dim3((unsigned)rows), dim3(threads), staged * line, stream>>>(
        logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab, staged);
  };
  if (packs <= 256 * 2) return start(loss_rows<T, kPack, 256, 2>, 256, 2, 0);
  if (packs <= 256 * 8) return start(loss_rows<T, kPack, 256, 8>, 256, 8, 0);
  if (packs <= 512 * 8 + kShared / 16) return start(loss_rows<T, kPack, 512, 8>, 512, 8, kShared);
  start(loss_rows<T, kPack, 1024, 8>, 1024, 8, 2 * kShared);
}

template <class T>
hipError_t cross_entropy_fused(const T* logits, const int64_t* target, float* loss, T* dlogits,
                               float smoothing, float z, int64_t ignore_index, int64_t rows,
                               int64_t vocab, hipStream_t stream) {
  const bool aligned = ((uintptr_t)logits | (uintptr_t)dlogits) % 16 == 0;
  const auto start = aligned ? by_length<T, 16 / sizeof(T)> : by_length<T, 1>;
  start(logits, target, loss, dlogits, smoothing, z, ignore_index, rows, (int)vocab, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t cross_entropy_fused_f32(const float* logits, const int64_t* target,
                                              float* loss, float* dlogits, float smoothing, float z,
                                              int64_t ignore_index, int64_t rows, int64_t vocab,
                                              hipStream_t stream) {
  return cross_entropy_fused(logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab,
                             stream);
}

extern "C" hipError_t cross_entropy_fused_f16(const __half* logits, const int64_t* target,
                                              float* loss, __half* dlogits, float smoothing,
                                              float z, int64_t ignore_index, int64_t rows,
                                              int64_t vocab, hipStream_t stream) {
  return cross_entropy_fused(logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab,
                             stream);
}

extern "C" hipError_t cross_entropy_fused_bf16(const __hip_bfloat16* logits, const int64_t* target,
                                               float* loss, __hip_bfloat16* dlogits,
                                               float smoothing, float z, int64_t ignore_index,
                                               int64_t rows, int64_t vocab, hipStream_t stream) {
  return cross_entropy_fused(logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab,
                             stream);
}
