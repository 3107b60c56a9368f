// Quantisation of rows to 8-bit floats that reads a row from memory once.
//
//  * as few lanes a row as hold it in registers, as the bits that were read: 8 or 32 lanes, which
//    reduce by shuffles, or a block of up to 1024;
//  * longer rows: 1024 threads, which read the values again from the cache.
//
// Few lanes with much each: what is on its way from memory then hides its latency. Elements up to
// the first multiple of a pack of 16 bytes, of x and of q alike, and behind the last pack are taken
// one by one. If a pointer is not aligned, a pack is one element. Shuffles stay within 32 lanes:
// one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

#include <type_traits>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of short rows
#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 890
constexpr bool kConverts = true;  // the device has an instruction for e4m3fn
#else
constexpr bool kConverts = false;
#endif

constexpr int threads(int lanes) { return lanes <= kWave ? kBlock : lanes; }

// Blocks that are to be on a multiprocessor at once: more than the compiler leaves registers for.
constexpr int resident(int lanes, int items) {
  return (items > 4 || lanes < kWave ? 1024 : 1536) / threads(lanes);
}

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

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

// Bytes that are moved as one word.
template <int kPack> union Bytes {
  uint8_t bits;
  uint8_t v[1];
};
template <> union Bytes<4> {
  uint32_t bits;
  uint32_t words[1];
};
template <> union Bytes<8> {
  uint2 bits;
  uint32_t words[2];
};

// The elements of a word of a pack. Elements of the union would be kept as halves of registers.
template <class T> __device__ void unpack(uint32_t word, float* v) {
  if constexpr (sizeof(T) == 4) {
    v[0] = __uint_as_float(word);
  } else if constexpr (std::is_same_v<T, __half>) {
    union {
      uint32_t bits;
      __half v[2];
    } pair = {word};
    v[0] = to_float(pair.v[0]), v[1] = to_float(pair.v[1]);
  } else {
    v[0] = __uint_as_float(word << 16), v[1] = __uint_as_float(word & 0xffff0000);
  }
}

// The larger ones of the absolute values of pairs of elements: `largest` has two, as a pair.
template <class T> __device__ void keep_largest(uint32_t& largest, uint32_t pair) {
#ifdef __HIP_PLATFORM_NVIDIA__
  const uint32_t size = pair & 0x7fff7fff;
  if constexpr (std::is_same_v<T, __half>) {
    asm("max.f16x2 %0, %0, %1;" : "+r"(largest) : "r"(size));
  } else {
    asm("max.bf16x2 %0, %0, %1;" : "+r"(largest) : "r"(size));
  }
#else
  // Bits of numbers that are not negative are in the order of the numbers.
  const uint32_t low = pair & 0x7fff, high = pair & 0x7fff0000;
  const uint32_t most = largest & 0xffff0000;
  largest = (most > high ? most : high) | ((largest & 0xffff) > low ? largest & 0xffff : low);
#endif
}

// The largest absolute value of some packs.
template <class T, int kPack> struct Largest {
  float value = 0.0f;
  uint32_t pair = 0;

  __device__ void add(const Pack<T, kPack>& pack) {
    if constexpr (kPack == 8) {
      keep_largest<T>(pair, pack.bits.x);
      keep_largest<T>(pair, pack.bits.y);
      keep_largest<T>(pair, pack.bits.z);
      keep_largest<T>(pair, pack.bits.w);
    } else {
#pragma unroll
      for (int j = 0; j < kPack; ++j) add(pack.v[j]);
    }
  }
  __device__ void add(T element) { value = fmaxf(value, fabsf(to_float(element))); }
  __device__ float get() const {
    if constexpr (kPack == 8) {
      float two[2];
      unpack<T>(pair, two);
      return fmaxf(value, fmaxf(two[0], two[1]));
    }
    return value;
  }
};

// The largest of the values, none of them negative, of the kLanes lanes of a row.
template <int kLanes> __device__ float row_max(float value, float* scratch) {
  constexpr int kShuffled = kLanes < kWave ? kLanes : kWave;
#pragma unroll
  for (int distance = kShuffled / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor(value, distance, kWave));
  }
  if constexpr (kLanes > kWave) {
    constexpr int kWaves = kLanes / kWave;
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
    __syncthreads();
    value = scratch[threadIdx.x % kWaves];
#pragma unroll
    for (int distance = kWaves / 2; distance > 0; distance /= 2) {
      value = fmaxf(value, __shfl_xor(value, distance, kWave));
    }
  }
  return value;
}

// The bits of the nearest number of the format with this bias, whose largest is `most`. Above the
// least power of two, rounding drops all but three bits of the mantissa; below it, a number that is
// added moves the bits that count to the end.
__device__ uint8_t encoded(float value, float most, int bias) {
  const uint32_t bits = __float_as_uint(value), sign = bits >> 31;
  const uint32_t size = __float_as_uint(fminf(fabsf(value), most));
  const uint32_t added = (uint32_t)(148 - bias) << 23;  // 2^(21 - bias)
  const uint32_t below = __float_as_uint(__uint_as_float(size) + __uint_as_float(added)) - added;
  const uint32_t rounded = (size + 0x7ffff + (size >> 20 & 1)) >> 20;
  const uint32_t above = rounded - ((uint32_t)(127 - bias) << 3);
  const uint32_t code = size < (uint32_t)(128 - bias) << 23 ? below : above;
  return (uint8_t)(code | ((code != 0 || bias == 7) ? sign << 7 : 0));
}


// How a row becomes bytes.
struct Format {
  int bias;
  float most;    // the largest number
  float step;    // scale
  float lift;    // a step has no finite inverse below the normal numbers: lifts values before
  uint32_t mask; // of bits that are not 0 in a row of zeros
  float factor;  // the inverse, of the step times `lift`; doubled where two() wants doubles

  __device__ Format(int bias, float largest) : bias(bias) {
    most = bias == 7 ? 448.0f : 240.0f;
    step = largest / most;
    lift = step > 0.0f && step < 1e-37f ? 1e12f : 1.0f;
    mask = step > 0.0f ? 0xffffffffu : 0;
    factor = step > 0.0f ? 1.0f / (step * lift) : 0.0f;
    if (kConverts && bias == 8) factor *= 2.0f;
  }
  // Values from here on may be the largest number of e4m3fnuz, which e4m3fn has no bits for.
  __device__ bool top(float value) const {
    return kConverts && bias == 8 && value * lift * factor >= 464.0f;
  }

  // Four values, lifted, as bytes. e4m3fnuz has for a number the bits that e4m3fn has for its
  // double: except that it has 240 where that has NaN, and no negative zero.
  __device__ uint32_t four(const float* v, bool top) const {
#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 890
    float of[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) of[j] = v[j] * factor;
    uint32_t bits;
    asm("{ .reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high}; }"
        : "=r"(bits)
        : "f"(of[0]), "f"(of[1]), "f"(of[2]), "f"(of[3]));
    if (top) {
#pragma unroll
      for (int j = 0; j < 4; ++j) bits |= fabsf(of[j]) >= 464.0f ? 0x7fu << 8 * j : 0u;
    }
    // A sum's upper bit says that its byte is more than a sign.
    if (bias == 8) bits &= ((bits & 0x7f7f7f7f) + 0x7f7f7f7f) | 0x7f7f7f7f;
    return bits & mask;
#else
    uint32_t bits = 0;
    for (int j = 0; j < 4; ++j) bits |= (uint32_t)encoded(v[j] * factor, most, bias) << 8 * j;
    return bits & mask;
#endif
  }
};

template <class T, int kPack>
__device__ Bytes<kPack> bytes_of(const Pack<T, kPack>& pack, const Format& format, bool top) {
  Bytes<kPack> bytes;
  if constexpr (kPack == 1) {
    const float v[4] = {to_float(pack.v[0])};
    bytes.bits = (uint8_t)format.four(v, top);
  } else {
    constexpr int kEach = 4 / sizeof(T);
    float v[kPack];
    unpack<T>(pack.bits.x, v);
    unpack<T>(pack.bits.y, v + kEach);
    unpack<T>(pack.bits.z, v + 2 * kEach);
    unpack<T>(pack.bits.w, v + 3 * kEach);
#pragma unroll
    for (int j = 0; j < kPack / 4; ++j) bytes.words[j] = format.four(v + 4 * j, top);
  }
  return bytes;
}

template <class T, int kPack, int kLanes, int kItems, bool kHeld>
__global__ __launch_bounds__(threads(kLanes), resident(kLanes, kItems)) void quantise_rows(
    const T* __restrict__ x, uint8_t* __restrict__ q, float* __restrict__ scale, int64_t rows,
    int64_t cols, int64_t bias) {
  __shared__ float scratch[kWave];
  constexpr int kRows = threads(kLanes) / kLanes;
  constexpr int kEdges = (2 * (kPack - 1) + kLanes - 1) / kLanes;  // elements of a lane
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  if (row >= rows) return;
  const int lane = threadIdx.x % kLanes;
  const int ahead = (int)(-(row * cols) & (kPack - 1));
  const int head = ahead < cols ? ahead : (int)cols;
  const int packs = ((int)cols - head) / kPack, single = (int)cols - packs * kPack;
  const T* const first = x + row * cols;
  uint8_t* const out = q + row * cols;
  const auto index = [&](int item) { return item * kLanes + lane; };
  const auto edge = [&](int i) { return i < head ? i : packs * kPack + i; };

  // All packs are requested before the first is looked at.
  Pack<T, kPack> held[kItems];
  T edges[kEdges > 0 ? kEdges : 1];
  const auto request = [&](int from) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      held[i] = Pack<T, kPack>{};
      if (index(from + i) < packs) {
        held[i] = read<T, kPack>(first + head + index(from + i) * kPack);
      }
    }
  };
  request(0);
#pragma unroll
  for (int i = 0; i < kEdges; ++i) {
    if (index(i) < single) edges[i] = first[edge(index(i))];
  }
  Largest<T, kPack> largest;
  for (int from = 0;;) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) largest.add(held[i]);
    from += kItems;
    if (kHeld || from * kLanes >= packs) break;
    request(from);
  }
#pragma unroll
  for (int i = 0; i < kEdges; ++i) {
    if (index(i) < single) largest.add(edges[i]);
  }
  const float own = largest.get();
  const Format format((int)bias, row_max<kLanes>(own, scratch));
  if (lane == 0) scale[row] = format.step;

  const bool top = format.top(own);
  if (format.lift != 1.0f) {  // rare: read again, so that this needs no registers
    for (int64_t i = lane; i < cols; i += kLanes) {
      const float v[4] = {to_float(first[i]) * format.lift};
      out[i] = (uint8_t)format.four(v, true);
    }
    return;
  }
  for (int from = 0;;) {
    if (!kHeld) request(from);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (index(from + i) >= packs) continue;
      const auto bytes = bytes_of(held[i], format, top);
      reinterpret_cast<Bytes<kPack>*>(out + head + index(from + i) * kPack)->bits = bytes.bits;
    }
    from += kItems;
    if (kHeld || from * kLanes >= packs) break;
  }
#pragma unroll
  for (int i = 0; i < kEdges; ++i) {
    if (index(i) >= single) continue;
    Pack<T, 1> one;
    one.v[0] = edges[i];
    out[edge(index(i))] = bytes_of(one, format, top).bits;
  }
}

template <class T, int kPack, int kLanes, int kItems, bool kHeld = true>
void launch(const T* x, uint8_t* q, float* scale, int64_t rows, int64_t cols, int64_t bias,
            hipStream_t stream) {
  constexpr int kThreads = threads(kLanes);
  constexpr int kRows = kThreads / kLanes;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  quantise_rows<T, kPack, kLanes, kItems, kHeld>
      <<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, q, scale, rows, cols, bias);
}

template <class T, int kPack> void by_length(const T* x, uint8_t* q, float* scale, int64_t rows,
                                             int64_t cols, int64_t bias, hipStream_t stream) {
  constexpr int kItems = kPack == 1 ? 8 : 4;
  const int64_t packs = cols / kPack;
  if (packs <= 8 * kItems) {
    launch<T, kPack, 8, kItems>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= kWave * kItems) {
    launch<T, kPack, kWave, kItems>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 128 * kItems) {
    launch<T, kPack, 128, kItems>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 256 * kItems) {
    launch<T, kPack, 256, kItems>(x, q, scale, rows, cols, bias, stream);
  } else if (kPack > 1 && packs <= 7 * 256) {  // longer rows for 256 threads, where these have room
    launch<T, kPack, 256, kPack == 1 ? 8 : 7>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 8 * 256) {
    launch<T, kPack, 256, 8>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 512 * kItems) {
    launch<T, kPack, 512, kItems>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 1024 * kItems) {
    launch<T, kPack, 1024, kItems>(x, q, scale, rows, cols, bias, stream);
  } else {
    launch<T, kPack, 1024, kItems, false>(x, q, scale, rows, cols, bias, stream);
  }
}

template <class T> hipError_t fp8_quant(const T* x, uint8_t* q, float* scale, int64_t rows,
                                        int64_t cols, int64_t bias, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)q;
  if (places % 16 == 0) {
    by_length<T, kPack>(x, q, scale, rows, cols, bias, stream);
  } else {
    by_length<T, 1>(x, q, scale, rows, cols, bias, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t fp8_quant_bf16(const __hip_bfloat16* x, uint8_t* q, float* scale,
                                     int64_t rows, int64_t cols, int64_t bias, hipStream_t stream) {
  return fp8_quant(x, q, scale, rows, cols, bias, stream);
}

extern "C" hipError_t fp8_quant_f16(const __half* x, uint8_t* q, float* scale, int64_t rows,
                                    int64_t cols, int64_t bias, hipStream_t stream) {
  return fp8_quant(x, q, scale, rows, cols, bias, stream);
}

extern "C" hipError_t fp8_quant_f32(const float* x, uint8_t* q, float* scale, int64_t rows,
                                    int64_t cols, int64_t bias, hipStream_t stream) {
  return fp8_quant(x, q, scale, rows, cols, bias, stream);
}
