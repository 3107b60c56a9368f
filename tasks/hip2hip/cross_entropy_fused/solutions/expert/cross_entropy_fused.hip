// Cross-entropy and its gradient that read a row of logits from memory once: a block has the row in
// registers, 16 bytes at a time, and what does not fit there in shared memory, where each thread
// reads only what it has written. What fits in neither is read again.
//
// A block takes one row after another. As soon as the gradients of a pack are written, the same
// pack of the block's next row is requested in its place: a block has reads and writes on their way
// at once. Sums are relative to the target's logit and to a power of two that grows where that is
// too small, so that a row is looked at once before its gradients are computed.
//
// Packs lie on 16-byte boundaries whatever the alignment of the row; those at its ends go element
// by element. Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;  // lanes that reduce by shuffles, also in waves of 64
constexpr float kLog2e = 1.44269504f, kLn2 = 0.69314718f;
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

// What is known of some logits, of which the target's has been taken away: the sum of their
// exponentials, each divided by 2^base, and their own sum.
struct Sums {
  float base, powers, plain;

  template <int kLanes> __device__ void join_lanes() {
    float largest = base;
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      largest = fmaxf(largest, __shfl_xor(largest, distance, kWave));
    }
    powers *= power_of_2(base - largest);
    base = largest;
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      powers += __shfl_xor(powers, distance, kWave);
      plain += __shfl_xor(plain, distance, kWave);
    }
  }
};

// The sums of a block. `scratch` is written again by the next call but one: one barrier is enough.
template <int kThreads> __device__ Sums join_block(Sums sums, Sums* scratch) {
  constexpr int kWaves = kThreads / kWave;
  sums.join_lanes<kWave>();
  if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = sums;
  __syncthreads();
  sums = scratch[threadIdx.x % kWaves];
  sums.join_lanes<kWaves>();
  return sums;
}

// A row in packs, of which the first may begin before it.
template <class T, int kPack> struct Row {
  const T* in;
  int lead;
  bool last;  // nothing lies behind this row

  __device__ Row(const T* logits, int64_t index, int64_t rows, int vocab)
      : in(logits + index * vocab),
        lead(kPack > 1 ? (int)((uintptr_t)in % 16 / sizeof(T)) : 0),
        last(index == rows - 1) {}

  __device__ int column(int pack) const { return pack * kPack - lead; }
  __device__ bool readable(int col, int vocab) const { return !last || col + kPack <= vocab; }

  __device__ void load(Pack<T, kPack>& pack, int col, int vocab) const {
    if (col >= vocab) return;
    if (readable(col, vocab)) {
      pack = read<T, kPack>(in + col);
    } else {
      for (int j = 0; j < kPack; ++j) {
        if (col + j < vocab) pack.v[j] = in[col + j];
      }
    }
  }
  __device__ void stage(Pack<T, kPack>* to, int col, int vocab) const {
    if (col >= vocab) return;
    if (readable(col, vocab)) {
      copy(to, reinterpret_cast<const Pack<T, kPack>*>(in + col));
    } else {
      for (int j = 0; j < kPack; ++j) {
        if (col + j < vocab) to->v[j] = in[col + j];
      }
    }
  }
};

template <class T, int kPack, int kThreads, int kHeld>
__global__ __launch_bounds__(kThreads, kHeld == 2 ? 5 : 1024 / kThreads) void loss_rows(
    const T* __restrict__ logits, const int64_t* __restrict__ target, float* __restrict__ loss,
    T* __restrict__ dlogits, float smoothing, float z, int64_t ignore_index, int64_t rows,
    int vocab, int staged) {
  extern __shared__ __align__(16) uint4 memory[];
  __shared__ Sums scratch[2][kWave];
  Pack<T, kPack>* const shared = reinterpret_cast<Pack<T, kPack>*>(memory);
  const int tid = threadIdx.x;
  const float label = smoothing / (float)vocab;

  int64_t index = blockIdx.x;
  Pack<T, kPack> held[kHeld];
  int64_t chosen = target[index];
  T of_chosen = logits[chosen != ignore_index ? index * vocab + chosen : 0];
  Row<T, kPack> row(logits, index, rows, vocab);
  if (chosen != ignore_index) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) row.load(held[i], row.column(i * kThreads + tid), vocab);
    for (int i = 0; i < staged; ++i) {
      row.stage(shared + i * kThreads + tid, row.column((i + kHeld) * kThreads + tid), vocab);
    }
  }

  for (int turn = 0;; ++turn) {
    const int64_t next_index = index + gridDim.x;
    const bool more = next_index < rows;
    const int64_t next_chosen = more ? target[next_index] : ignore_index;
    const bool ahead = next_chosen != ignore_index, counted = chosen != ignore_index;
    const Row<T, kPack> next(logits, more ? next_index : index, rows, vocab);

    float origin = 0.0f, shift = 0.0f, scale = 0.0f;
    if (counted) {
      origin = to_float(of_chosen);
      Sums sums = {};
      const auto take = [&](int col, const Pack<T, kPack>& pack) {
        if (col >= vocab) return;
        float values[kPack];
        float most = -INFINITY;
        if (col >= 0 && col + kPack <= vocab) {
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            values[j] = to_float(pack.v[j]) - origin;
            most = fmaxf(most, values[j]);
            sums.plain += values[j];
          }
        } else {
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            values[j] = -INFINITY;
            if ((unsigned)(col + j) >= (unsigned)vocab) continue;
            values[j] = to_float(pack.v[j]) - origin;
            most = fmaxf(most, values[j]);
            sums.plain += values[j];
          }
        }
        if (most * kLog2e > sums.base + 60.0f) {
          sums.powers *= power_of_2(sums.base - most * kLog2e);
          sums.base = most * kLog2e;
        }
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          sums.powers += power_of_2(fmaf(values[j], kLog2e, -sums.base));
        }
      };
#pragma unroll
      for (int i = 0; i < kHeld; ++i) take(row.column(i * kThreads + tid), held[i]);
      settle();
      for (int i = 0; i < staged; ++i) {
        take(row.column((i + kHeld) * kThreads + tid), shared[i * kThreads + tid]);
      }
      for (int i = kHeld + staged;; ++i) {
        const int col = row.column(i * kThreads + tid);
        if (col >= vocab) break;
        Pack<T, kPack> pack;
        row.load(pack, col, vocab);
        take(col, pack);
      }
      sums = join_block<kThreads>(sums, scratch[turn % 2]);
      const float of_target = logf(sums.powers) + sums.base * kLn2, lse = of_target + origin;
      if (tid == 0) {
        const float of_all = of_target - sums.plain / (float)vocab;
        loss[index] = (1.0f - smoothing) * of_target + smoothing * of_all + z * lse * lse;
      }
      shift = sums.base;
      scale = (1.0f + 2.0f * z * lse) / sums.powers;
    } else if (tid == 0) {
      loss[index] = 0.0f;
    }

    if (ahead) of_chosen = next.in[next_chosen];
    T* const out = dlogits + index * vocab;
    const auto give = [&](int col, const Pack<T, kPack>& pack) {
      if (col >= vocab) return;
      Pack<T, kPack> result;
      if (counted) {
        float gradients[kPack];
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          const float power = fmaf(to_float(pack.v[j]) - origin, kLog2e, -shift);
          gradients[j] = fmaf(power_of_2(power), scale, -label);
        }
        if (chosen >= col && chosen < col + kPack) {
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            if (chosen == col + j) gradients[j] -= 1.0f - smoothing;
          }
        }
#pragma unroll
        for (int j = 0; j < kPack; ++j) result.v[j] = from_float<T>(gradients[j]);
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j) result.v[j] = from_float<T>(0.0f);
      }
      if (col >= 0 && col + kPack <= vocab) {
        write<T, kPack>(out + col, result);
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          if ((unsigned)(col + j) < (unsigned)vocab) out[col + j] = result.v[j];
        }
      }
    };
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      give(row.column(i * kThreads + tid), held[i]);
      if (ahead) next.load(held[i], next.column(i * kThreads + tid), vocab);
    }
    for (int i = 0; i < staged; ++i) {
      Pack<T, kPack>* const place = shared + i * kThreads + tid;
      give(row.column((i + kHeld) * kThreads + tid), *place);
      if (ahead) next.stage(place, next.column((i + kHeld) * kThreads + tid), vocab);
    }
    for (int i = kHeld + staged;; ++i) {
      const int col = row.column(i * kThreads + tid);
      if (col >= vocab) break;
      Pack<T, kPack> pack;
      row.load(pack, col, vocab);
      give(col, pack);
    }
    if (!more) return;
    index = next_index;
    chosen = next_chosen;
    row = next;
  }
}

template <class T, int kPack>
void by_length(const T* logits, const int64_t* target, float* loss, T* dlogits, float smoothing,
               float z, int64_t ignore_index, int64_t rows, int vocab, hipStream_t stream) {
  int device = 0, processors = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  const int packs = (vocab + kPack - 1 + kPack - 1) / kPack;  // with the widest lead
  // `bytes` of shared memory are there for what is not in registers. `resident` blocks of a
  // processor take one row after another; 0: there are as many blocks as rows.
  const auto start = [&](auto kernel, int threads, int held, int bytes, int resident) {
    const int line = threads * (int)sizeof(Pack<T, kPack>);  // bytes of a pack for each thread
    const int left = (packs + threads - 1) / threads - held;
    const int staged = left < 0 ? 0 : left < bytes / line ? left : bytes / line;
    if (staged * line > 32 << 10) {
      (void)hipFuncSetAttribute((const void*)kernel, hipFuncAttributeMaxDynamicSharedMemorySize,
                                staged * line);
    }
    const int64_t most = (int64_t)processors * resident;
    const int64_t blocks = most > 0 && most < rows ? most : rows;
    kernel<<<dim3((unsigned)blocks), dim3(threads), staged * line, stream>>>(
        logits, target, loss, dlogits, smoothing, z, ignore_index, rows, vocab, staged);
  };
  if (packs <= 256 * 2) return start(loss_rows<T, kPack, 256, 2>, 256, 2, 0, 0);
  if (packs <= 256 * 8) return start(loss_rows<T, kPack, 256, 4>, 256, 4, 16 << 10, 4);
  if (packs <= 512 * 4 + kShared / 16) {
    return start(loss_rows<T, kPack, 512, 4>, 512, 4, kShared, 2);
  }
  start(loss_rows<T, kPack, 1024, 4>, 1024, 4, 2 * kShared, 1);
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
