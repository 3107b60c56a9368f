// Logarithms of the probabilities of tokens, and entropies, that read a row once.
//
// A thread keeps the largest logit it has seen, and by it the sum of the powers and of their
// products with their exponents; where a larger logit comes, it converts both sums. Threads' sums
// are then joined in the same way. A block has one long row, or 32 lanes have a short one. A row's
// elements up to a 16-byte boundary and behind the last one are taken one by one, the others as
// packs of 16 bytes, several of them requested before one is used. Shuffles stay within 32 lanes:
// one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kAhead = 4;    // packs that a thread requests at once
constexpr int kShort = 256;  // threads of a block of short rows
constexpr int kLong = 512;   // threads of a long row
constexpr int64_t kShortest = 2048;  // columns of a row that is worth a block

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

// Over logits x that were seen, with d = (x - most) * scale: the sum of the powers 2^d, and the sum
// of 2^d * d. An exponent below kLeast has the power 0; so its product is no NaN, even where the
// difference of two logits is infinite in float32.
struct Sums {
  float most, powers, products;

  static __device__ float exponent(float x, float most, float scale) {
    constexpr float kLeast = -1000.0f;
    return fmaxf((x - most) * scale, kLeast);
  }
  // Has the sums be by a `larger` logit.
  __device__ void raise(float larger, float scale) {
    const float d = exponent(most, larger, scale), power = power_of_2(d);
    products = (products + d * powers) * power;
    powers *= power;
    most = larger;
  }
  __device__ void take(float x, float scale) {
    const float d = exponent(x, most, scale), power = power_of_2(d);
    powers += power;
    products = fmaf(power, d, products);
  }
  __device__ void join(Sums other, float scale) {
    const float larger = fmaxf(most, other.most);
    raise(larger, scale);
    other.raise(larger, scale);
    powers += other.powers;
    products += other.products;
  }
  __device__ Sums of_lane(int distance) const {
    Sums other;
    other.most = __shfl_xor(most, distance, kWave);
    other.powers = __shfl_xor(powers, distance, kWave);
    other.products = __shfl_xor(products, distance, kWave);
    return other;
  }
};

template <class T, int kLanes>
__global__ __launch_bounds__(kLanes == kWave ? kShort : kLanes) void measure_rows(
    const T* __restrict__ logits, const int64_t* __restrict__ token, float* __restrict__ logprob,
    float* __restrict__ entropy, float temperature, int64_t rows, int vocab) {
  constexpr int kPack = 16 / sizeof(T);
  constexpr int kRows = kLanes == kWave ? kShort / kWave : 1;
  constexpr float kLog2 = 0.6931471805599453f;
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  if (row >= rows) return;
  const int lane = threadIdx.x % kLanes;
  const T* x = logits + row * vocab;
  const float scale = 1.0f / (temperature * kLog2);

  const int beyond = (int)((uintptr_t)x % 16 / sizeof(T)), ahead = beyond ? kPack - beyond : 0;
  const int head = ahead < vocab ? ahead : vocab, packs = (vocab - head) / kPack;
  Sums sums = {-INFINITY, 0.0f, 0.0f};
  for (int i = lane; i < packs; i += kLanes * kAhead) {
    Pack<T, kPack> pack[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int at = i + u * kLanes;
      if (at < packs) pack[u] = read<T, kPack>(x + head + at * kPack);
    }
    float most = sums.most;
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * kLanes >= packs) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) most = fmaxf(most, to_float(pack[u].v[j]));
    }
    if (most > sums.most) sums.raise(most, scale);
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (i + u * kLanes >= packs) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) sums.take(to_float(pack[u].v[j]), scale);
    }
  }
  // Fewer than two packs of elements are left, on both sides of the packs.
  for (int i = lane; i < vocab - packs * kPack; i += kLanes) {
    const float v = to_float(x[i < head ? i : i + packs * kPack]);
    if (v > sums.most) sums.raise(v, scale);
    sums.take(v, scale);
  }

#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    sums.join(sums.of_lane(distance), scale);
  }
  if constexpr (kLanes > kWave) {
    __shared__ Sums parts[kLanes / kWave];
    if (lane % kWave == 0) parts[lane / kWave] = sums;
    __syncthreads();
    if (lane >= kWave) return;
    sums = lane < kLanes / kWave ? parts[lane] : Sums{-INFINITY, 0.0f, 0.0f};
#pragma unroll
    for (int distance = kWave / 2; distance > 0; distance /= 2) {
      sums.join(sums.of_lane(distance), scale);
    }
  }
  if (lane == 0) {
    const float total = logf(sums.powers);
    const float less = (to_float(x[token[row]]) - sums.most) / temperature;
    logprob[row] = fmaxf(less, -3.4028234e38f) - total;
    entropy[row] = total - kLog2 * sums.products / sums.powers;
  }
}

template <class T>
hipError_t token_logprob(const T* logits, const int64_t* token, float* logprob, float* entropy,
                         float temperature, int64_t rows, int64_t vocab, hipStream_t stream) {
  if (vocab < kShortest) {
    constexpr int kRows = kShort / kWave;
    const dim3 grid((unsigned)((rows + kRows - 1) / kRows));
    measure_rows<T, kWave><<<grid, dim3(kShort), 0, stream>>>(logits, token, logprob, entropy,
                                                              temperature, rows, (int)vocab);
  } else {
    measure_rows<T, kLong><<<dim3((unsigned)rows), dim3(kLong), 0, stream>>>(
        logits, token, logprob, entropy, temperature, rows, (int)vocab);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t token_logprob_f32(const float* logits, const int64_t* token, float* logprob,
                                        float* entropy, float temperature, int64_t rows,
                                        int64_t vocab, hipStream_t stream) {
  return token_logprob(logits, token, logprob, entropy, temperature, rows, vocab, stream);
}

extern "C" hipError_t token_logprob_f16(const __half* logits, const int64_t* token, float* logprob,
                                        float* entropy, float temperature, int64_t rows,
                                        int64_t vocab, hipStream_t stream) {
  return token_logprob(logits, token, logprob, entropy, temperature, rows, vocab, stream);
}

extern "C" hipError_t token_logprob_bf16(const __hip_bfloat16* logits, const int64_t* token,
                                         float* logprob, float* entropy, float temperature,
                                         int64_t rows, int64_t vocab, hipStream_t stream) {
  return token_logprob(logits, token, logprob, entropy, temperature, rows, vocab, stream);
}
