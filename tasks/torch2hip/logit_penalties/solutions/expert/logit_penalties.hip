// Probabilities of tokens with penalties, in two passes over a row, which the second finds in the
// cache.
//
// The first pass finds the largest changed logit and the sum of the powers, each thread by the
// largest it has seen; the second computes the changed logits again and writes. Where there are
// many rows, a block does both passes for one; on Hopper a cluster of blocks does, of two or, of
// fewer rows, of eight, which tell each other their sums. Where there are few, a row has several
// blocks, which leave their parts of the sum in the workspace, and the second pass is a kernel of
// its own.
//
// The tensors have an element's place in common: elements up to a multiple of four places and
// behind the last are taken one by one, the others as packs of four, several of them requested
// before one is used. If a pointer is not aligned, all are taken one by one. Shuffles stay within
// 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 512;
constexpr int kWave = 32;        // lanes that reduce by shuffles, also in waves of 64
constexpr int kAhead = 4;        // packs that a thread requests at once
constexpr int64_t kMany = 192;   // rows that keep the device busy with a block each
constexpr int64_t kSome = 48;    // with eight
constexpr int64_t kBlocks = 1024;    // blocks that do so where rows are fewer
constexpr int64_t kLeast = 4096;     // elements that are worth a block

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

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
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(v));  // results too small for float32's format are 0
  return v;
#else
  return exp2f(v);
#endif
}

// Conversions of whole numbers are slow, as exponentials are: here the byte is the end of 2^23's
// bits.
__device__ float small_float(uint8_t v) { return __uint_as_float(0x4b000000u | v) - 8388608.0f; }

// above / value as a product: of a power of two, and of what is finite even where value is tiny.
template <bool kTiny> struct Inverse {
  float lift, rest;

  __device__ static bool tiny(float value) { return fabsf(value) < 1e-30f; }
  __device__ Inverse(float above, float value)
      : lift(kTiny && tiny(value) ? 1.8446744e19f : 1.0f), rest(above / (value * lift)) {}
  __device__ float times(float v) const { return (kTiny ? v * lift : v) * rest; }
};

// The largest of some changed logits, and the sum of the powers by it. kNone is finite: differences
// are never those of two infinities.
struct Sum {
  float most, powers;

  static constexpr float kNone = -3.4028234e38f;

  template <bool kTiny>
  __device__ static float power(float logit, float most, const Inverse<kTiny>& temperature) {
    return power_of_2(temperature.times(logit - most));
  }
  template <bool kTiny> __device__ void raise(float larger, const Inverse<kTiny>& temperature) {
    powers *= power(most, larger, temperature);
    most = larger;
  }
  template <bool kTiny> __device__ void join(Sum other, const Inverse<kTiny>& temperature) {
    const float larger = fmaxf(most, other.most);
    raise(larger, temperature);
    other.raise(larger, temperature);
    powers += other.powers;
  }
};

// The sum of the values of all threads, for all of them.
template <bool kTiny> __device__ Sum block_sum(Sum sum, const Inverse<kTiny>& temperature) {
  __shared__ Sum parts[kThreads / kWave];
  const auto wave_sum = [&] {
#pragma unroll
    for (int distance = kWave / 2; distance > 0; distance /= 2) {
      const float most = __shfl_xor(sum.most, distance, kWave);
      sum.join({most, __shfl_xor(sum.powers, distance, kWave)}, temperature);
    }
  };
  wave_sum();
  const int lane = threadIdx.x % kWave;
  if (lane == 0) parts[threadIdx.x / kWave] = sum;
  __syncthreads();
  sum = lane < kThreads / kWave ? parts[lane] : Sum{Sum::kNone, 0.0f};
  wave_sum();
  return sum;
}

// What a row's logits become before they are divided by the temperature's size. `sign` is that of
// the temperature, so that the largest stays the largest. Differences times `temperature` are
// exponents of 2.
template <bool kTiny> struct Change {
  float repetition, presence, frequency, sign;
  Inverse<kTiny> inverse, temperature;

  __device__ float of(float logit, uint8_t seen) const {
    const float changed = logit > 0.0f ? inverse.times(logit) : logit * repetition;
    return sign * (seen ? changed - fmaf(frequency, small_float(seen), presence) : logit);
  }
};

template <class T> struct Tensors {
  const T* logits;
  const uint8_t* seen;
  const float *repetition, *presence, *frequency, *temperature;
  float* probability;
  int64_t rows, vocab;

  __device__ bool tiny(int64_t row) const {
    return Inverse<true>::tiny(repetition[row]) || Inverse<true>::tiny(temperature[row]);
  }
  template <bool kTiny> __device__ Change<kTiny> change(int64_t row) const {
    constexpr float kLog2e = 1.4426950408889634f;
    return {repetition[row],
            presence[row],
            frequency[row],
            temperature[row] < 0.0f ? -1.0f : 1.0f,
            Inverse<kTiny>(1.0f, repetition[row]),
            Inverse<kTiny>(kLog2e, fabsf(temperature[row]))};
  }
};

// The places first .. end - 1 of a row that a block has, as packs and single ones around them.
template <int kPack> struct Span {
  int64_t first, end, packed;
  int head, packs, single;

  __device__ Span(int64_t first, int64_t end) : first(first), end(end) {
    const int64_t size = end - first, ahead = (kPack - first % kPack) % kPack;
    head = (int)(ahead < size ? ahead : size);
    packs = (int)((size - head) / kPack);
    packed = first + head;
    single = (int)size - packs * kPack;
  }
  __device__ int64_t pack(int i) const { return packed + (int64_t)i * kPack; }
  __device__ int64_t one(int i) const { return i < head ? first + i : pack(packs) + i - head; }
};

template <class T, int kPack, bool kTiny>
__device__ Sum add(const Tensors<T>& of, const Change<kTiny>& change, const Span<kPack>& span) {
  Sum sum = {Sum::kNone, 0.0f};
  for (int i = threadIdx.x; i < span.packs; i += kThreads * kAhead) {
    Pack<T, kPack> logits[kAhead];
    Pack<uint8_t, kPack> seen[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * kThreads >= span.packs) continue;
      logits[u] = read<T, kPack>(of.logits + span.pack(i + u * kThreads));
      seen[u] = read<uint8_t, kPack>(of.seen + span.pack(i + u * kThreads));
    }
    float v[kAhead][kPack], most = sum.most;
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * kThreads >= span.packs) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        v[u][j] = change.of(to_float(logits[u].v[j]), seen[u].v[j]);
        most = fmaxf(most, v[u][j]);
      }
    }
    if (most > sum.most) sum.raise(most, change.temperature);
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * kThreads >= span.packs) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        sum.powers += Sum::power(v[u][j], sum.most, change.temperature);
      }
    }
  }
  for (int i = threadIdx.x; i < span.single; i += kThreads) {
    const int64_t at = span.one(i);
    const float v = change.of(to_float(of.logits[at]), of.seen[at]);
    sum.join({v, 1.0f}, change.temperature);
  }
  return sum;
}

template <class T, int kPack, bool kTiny>
__device__ void divide(const Tensors<T>& of, const Change<kTiny>& change, const Span<kPack>& span,
                       const Sum& sum) {
  const float factor = 1.0f / sum.powers;
  for (int i = threadIdx.x; i < span.packs; i += kThreads * kAhead) {
    Pack<T, kPack> logits[kAhead];
    Pack<uint8_t, kPack> seen[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * kThreads >= span.packs) continue;
      logits[u] = read<T, kPack>(of.logits + span.pack(i + u * kThreads));
      seen[u] = read<uint8_t, kPack>(of.seen + span.pack(i + u * kThreads));
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * kThreads >= span.packs) continue;
      Pack<float, kPack> result;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float v = change.of(to_float(logits[u].v[j]), seen[u].v[j]);
        result.v[j] = Sum::power(v, sum.most, change.temperature) * factor;
      }
      write<float, kPack>(of.probability + span.pack(i + u * kThreads), result);
    }
  }
  for (int i = threadIdx.x; i < span.single; i += kThreads) {
    const int64_t at = span.one(i);
    const float v = change.of(to_float(of.logits[at]), of.seen[at]);
    of.probability[at] = Sum::power(v, sum.most, change.temperature) * factor;
  }
}

// Calls f(change), of a row's settings. Hardly any are tiny: the others take fewer products.
template <class T, class F> __device__ void with_change(const Tensors<T>& of, int64_t row, F f) {
  if (of.tiny(row)) f(of.template change<true>(row));
  else f(of.template change<false>(row));
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void penalise_rows(Tensors<T> of) {
  const int64_t row = blockIdx.x;
  const Span<kPack> span(row * of.vocab, (row + 1) * of.vocab);
  with_change(of, row, [&](const auto& change) {
    const Sum sum = block_sum(add<T, kPack>(of, change, span), change.temperature);
    divide<T, kPack>(of, change, span, sum);
  });
}

// blockIdx.x is a part of the row blockIdx.y, `share` elements of it.
template <int kPack> __device__ Span<kPack> part(int64_t vocab, int64_t share) {
  const int64_t first = blockIdx.x * share, end = first + share;
  const int64_t row = blockIdx.y * vocab;
  return Span<kPack>(row + first, row + (end < vocab ? end : vocab));
}

#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900
constexpr bool kClusters = true;

// A cluster of kParts blocks has a row. Few rows are under way at once, so that what the second
// pass reads is in the cache.
template <class T, int kPack, int kParts>
__global__ __launch_bounds__(kThreads, 2) __cluster_dims__(kParts) void penalise_shared(
    Tensors<T> of, int64_t share) {
  __shared__ Sum own;
  const auto span = part<kPack>(of.vocab, share);
  with_change(of, blockIdx.y, [&](const auto& change) {
    const Sum part_sum = block_sum(add<T, kPack>(of, change, span), change.temperature);
    if (threadIdx.x == 0) own = part_sum;
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    Sum sum = {Sum::kNone, 0.0f};
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const Sum* other;
      asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(&own), "r"(i));
      sum.join(*other, change.temperature);
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    divide<T, kPack>(of, change, span, sum);
    // No block ends before all have read its sum.
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  });
}

template <class T, int kPack, int kParts>
void launch_shared(const Tensors<T>& of, hipStream_t stream) {
  const dim3 grid(kParts, (unsigned)of.rows);
  const int64_t share = (of.vocab + kParts - 1) / kParts;
  penalise_shared<T, kPack, kParts><<<grid, dim3(kThreads), 0, stream>>>(of, share);
}
#else
constexpr bool kClusters = false;
template <class T, int kPack, int kParts> void launch_shared(const Tensors<T>&, hipStream_t) {}
#endif

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void add_parts(Tensors<T> of, int64_t share, Sum* sums) {
  const auto span = part<kPack>(of.vocab, share);
  with_change(of, blockIdx.y, [&](const auto& change) {
    const Sum sum = block_sum(add<T, kPack>(of, change, span), change.temperature);
    if (threadIdx.x == 0) sums[blockIdx.y * gridDim.x + blockIdx.x] = sum;
  });
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void divide_parts(Tensors<T> of, int64_t share,
                                                         const Sum* sums) {
  with_change(of, blockIdx.y, [&](const auto& change) {
    Sum sum = {Sum::kNone, 0.0f};
    for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
      sum.join(sums[blockIdx.y * gridDim.x + i], change.temperature);
    }
    const auto span = part<kPack>(of.vocab, share);
    divide<T, kPack>(of, change, span, block_sum(sum, change.temperature));
  });
}

// Blocks of a row. No more than kBlocks, and 1 where there are many rows.
int64_t parts_of(int64_t rows, int64_t vocab) {
  const int64_t busy = (kBlocks + rows - 1) / rows, most = (vocab + kLeast - 1) / kLeast;
  return rows >= kMany ? 1 : busy < most ? busy : most;
}

size_t workspace_bytes(int64_t rows, int64_t vocab) {
  const int64_t parts = parts_of(rows, vocab);
  return parts > 1 ? rows * parts * sizeof(Sum) : 0;
}

template <class T, int kPack> void launch(const Tensors<T>& of, void* workspace,
                                          hipStream_t stream) {
  // Rows that are long enough for a cluster, and enough to keep the device busy with one each.
  if (kClusters && of.rows >= kMany && of.vocab >= kLeast) {
    return launch_shared<T, kPack, 2>(of, stream);
  }
  if (kClusters && of.rows >= kSome && of.vocab >= 4 * kLeast) {
    return launch_shared<T, kPack, 8>(of, stream);
  }
  const int64_t parts = parts_of(of.rows, of.vocab);
  if (parts == 1) {
    penalise_rows<T, kPack><<<dim3((unsigned)of.rows), dim3(kThreads), 0, stream>>>(of);
    return;
  }
  const dim3 grid((unsigned)parts, (unsigned)of.rows);
  const int64_t share = (of.vocab + parts - 1) / parts;
  Sum* sums = (Sum*)workspace;
  add_parts<T, kPack><<<grid, dim3(kThreads), 0, stream>>>(of, share, sums);
  divide_parts<T, kPack><<<grid, dim3(kThreads), 0, stream>>>(of, share, sums);
}

template <class T>
hipError_t logit_penalties(const T* logits, const uint8_t* seen, const float* repetition,
                           const float* presence, const float* frequency, const float* temperature,
                           float* probability, int64_t rows, int64_t vocab, void* workspace,
                           hipStream_t stream) {
  const Tensors<T> of = {logits,      seen,        repetition, presence, frequency,
                         temperature, probability, rows,       vocab};
  const uintptr_t places = (uintptr_t)logits | (uintptr_t)seen | (uintptr_t)probability;
  if (places % 16 == 0) {
    launch<T, 4>(of, workspace, stream);
  } else {
    launch<T, 1>(of, workspace, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" size_t logit_penalties_f32_workspace(int64_t rows, int64_t vocab) {
  return workspace_bytes(rows, vocab);
}

extern "C" hipError_t logit_penalties_f32(const float* logits, const uint8_t* seen,
                                          const float* repetition, const float* presence,
                                          const float* frequency, const float* temperature,
                                          float* probability, int64_t rows, int64_t vocab,
                                          void* workspace, hipStream_t stream) {
  return logit_penalties(logits, seen, repetition, presence, frequency, temperature, probability,
                         rows, vocab, workspace, stream);
}

extern "C" size_t logit_penalties_f16_workspace(int64_t rows, int64_t vocab) {
  return workspace_bytes(rows, vocab);
}

extern "C" hipError_t logit_penalties_f16(const __half* logits, const uint8_t* seen,
                                          const float* repetition, const float* presence,
                                          const float* frequency, const float* temperature,
                                          float* probability, int64_t rows, int64_t vocab,
                                          void* workspace, hipStream_t stream) {
  return logit_penalties(logits, seen, repetition, presence, frequency, temperature, probability,
                         rows, vocab, workspace, stream);
}

extern "C" size_t logit_penalties_bf16_workspace(int64_t rows, int64_t vocab) {
  return workspace_bytes(rows, vocab);
}

extern "C" hipError_t logit_penalties_bf16(const __hip_bfloat16* logits, const uint8_t* seen,
                                           const float* repetition, const float* presence,
                                           const float* frequency, const float* temperature,
                                           float* probability, int64_t rows, int64_t vocab,
                                           void* workspace, hipStream_t stream) {
  return logit_penalties(logits, seen, repetition, presence, frequency, temperature, probability,
                         rows, vocab, workspace, stream);
}
