// Quantisation of rows to 8-bit floats that reads a row from memory once.
//
//  * as few lanes a row as hold it in registers, four packs of 16 bytes each: 8 or 32 lanes, which
//    reduce by shuffles, or a block of up to 1024;
//  * longer rows: 1024 threads, which compute the values again from the cache.
//
// Few lanes with much each: what is on its way from memory then hides its latency.
//
// Where rows are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of short rows

// Packs of a row in a lane's registers.
template <int kPack> constexpr int kItems = kPack == 1 ? 8 : 4;

constexpr int threads(int lanes) { return lanes <= kWave ? kBlock : lanes; }

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
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

template <int kPack> struct Values {
  float v[kPack];
};

// As many bytes as a pack has elements, moved as one word.
template <int kPack> union Bytes;
template <> union Bytes<1> {
  uint8_t bits;
  uint8_t v[1];
};
template <> union Bytes<4> {
  uint32_t bits;
  uint8_t v[4];
};
template <> union Bytes<8> {
  uint2 bits;
  uint8_t v[8];
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

// A row of float32 values for kLanes lanes: in registers, or computed again where it is longer.
template <class Source, int kPack, int kLanes, bool kHeld> struct Row {
  const Source& source;
  const int cols, lane;
  Values<kPack> held[kHeld ? kItems<kPack> : 1];

  // All packs are requested before the first is looked at.
  __device__ Row(const Source& source, int cols)
      : source(source), cols(cols), lane(threadIdx.x % kLanes) {
    if constexpr (kHeld) {
      typename Source::Raw raw[kItems<kPack>];
#pragma unroll
      for (int i = 0; i < kItems<kPack>; ++i) {
        if (column(i) < cols) raw[i] = source.load(column(i));
      }
#pragma unroll
      for (int i = 0; i < kItems<kPack>; ++i) {
        if (column(i) < cols) held[i] = source.values(column(i), raw[i]);
      }
    }
  }

  __device__ int column(int item) const { return (item * kLanes + lane) * kPack; }

  // Calls f(column, values) for each pack of this lane.
  template <class F> __device__ void each(F f) const {
    if constexpr (kHeld) {
#pragma unroll
      for (int i = 0; i < kItems<kPack>; ++i) {
        if (column(i) < cols) f(column(i), held[i]);
      }
    } else {
      for (int i = 0; column(i) < cols; ++i) {
        f(column(i), source.values(column(i), source.load(column(i))));
      }
    }
  }
};

template <class T, int kPack> struct Plain {
  const T* x;
  using Raw = Pack<T, kPack>;

  __device__ Raw load(int col) const { return read<T, kPack>(x + col); }
  __device__ Values<kPack> values(int, const Raw& raw) const {
    Values<kPack> values;
#pragma unroll
    for (int j = 0; j < kPack; ++j) values.v[j] = to_float(raw.v[j]);
    return values;
  }
};

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

// The bits of two numbers, the first in the low byte.
__device__ uint16_t encoded_pair(float first, float second, float most, int bias) {
#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 890
  // e4m3fnuz has for a number the bits that e4m3fn has for its double: except that it has 240 where
  // that has NaN, and no negative zero.
  if (bias == 8) first *= 2.0f, second *= 2.0f;
  uint16_t bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(second), "f"(first));
  if (bias == 8) {
    if (fabsf(first) >= 464.0f) bits |= 0x7f;
    if (fabsf(second) >= 464.0f) bits |= 0x7f00;
    if ((bits & 0xff) == 0x80) bits &= 0xff00;
    if ((bits & 0xff00) == 0x8000) bits &= 0xff;
  }
  return bits;
#else
  return (uint16_t)(encoded(first, most, bias) | encoded(second, most, bias) << 8);
#endif
}

template <class T, int kPack, int kLanes, bool kHeld>
__global__ __launch_bounds__(threads(kLanes)) void quantise_rows(
    const T* __restrict__ x, uint8_t* __restrict__ q, float* __restrict__ scale, int64_t rows,
    int64_t cols, int64_t bias) {
  __shared__ float scratch[kWave];
  constexpr int kRows = threads(kLanes) / kLanes;
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  if (row >= rows) return;
  const Plain<T, kPack> source{x + row * cols};
  const Row<Plain<T, kPack>, kPack, kLanes, kHeld> values(source, (int)cols);

  float largest = 0.0f;
  values.each([&](int, const Values<kPack>& pack) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) largest = fmaxf(largest, fabsf(pack.v[j]));
  });
  const float most = bias == 7 ? 448.0f : 240.0f;
  const float step = row_max<kLanes>(largest, scratch) / most;
  if (threadIdx.x % kLanes == 0) scale[row] = step;

  // A step has no finite inverse below the normal numbers: those values are scaled up first.
  const float scaled = step < 1e-37f ? 1e12f : 1.0f;
  const float per_step = step > 0.0f ? 1.0f / (step * scaled) : 0.0f;
  uint8_t* out = q + row * cols;
  values.each([&](int col, const Values<kPack>& pack) {
    Bytes<kPack> bytes;
#pragma unroll
    for (int j = 0; j < kPack; j += 2) {
      const float next = j + 1 < kPack ? pack.v[j + 1] : 0.0f;
      const uint16_t pair = encoded_pair(pack.v[j] * scaled * per_step, next * scaled * per_step,
                                         most, (int)bias);
      bytes.v[j] = step > 0.0f ? (uint8_t)pair : 0;
      if (j + 1 < kPack) bytes.v[j + 1] = step > 0.0f ? (uint8_t)(pair >> 8) : 0;
    }
    reinterpret_cast<Bytes<kPack>*>(out + col)->bits = bytes.bits;
  });
}

template <class T, int kPack, int kLanes, bool kHeld>
void launch(const T* x, uint8_t* q, float* scale, int64_t rows, int64_t cols, int64_t bias,
            hipStream_t stream) {
  constexpr int kThreads = threads(kLanes);
  constexpr int kRows = kThreads / kLanes;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  quantise_rows<T, kPack, kLanes, kHeld>
      <<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, q, scale, rows, cols, bias);
}

template <class T, int kPack> void by_length(const T* x, uint8_t* q, float* scale, int64_t rows,
                                             int64_t cols, int64_t bias, hipStream_t stream) {
  const int64_t packs = cols / kPack;
  if (packs <= 8 * kItems<kPack>) {
    launch<T, kPack, 8, true>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= kWave * kItems<kPack>) {
    launch<T, kPack, kWave, true>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 128 * kItems<kPack>) {
    launch<T, kPack, 128, true>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 256 * kItems<kPack>) {
    launch<T, kPack, 256, true>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 512 * kItems<kPack>) {
    launch<T, kPack, 512, true>(x, q, scale, rows, cols, bias, stream);
  } else if (packs <= 1024 * kItems<kPack>) {
    launch<T, kPack, 1024, true>(x, q, scale, rows, cols, bias, stream);
  } else {
    launch<T, kPack, 1024, false>(x, q, scale, rows, cols, bias, stream);
  }
}

template <class T> hipError_t fp8_quant(const T* x, uint8_t* q, float* scale, int64_t rows,
                                        int64_t cols, int64_t bias, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)q;
  if (cols % kPack == 0 && places % 16 == 0) {
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
