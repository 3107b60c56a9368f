// Weights of 4 bits to floating point: a thread writes packs of 16 bytes. Those of a wave lie next
// to each other, and so do the bytes that it reads for them; a thread requests the bytes of several
// packs before it looks at the first. A tensor that is not aligned is written element by element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kItems = 4;     // packs of a thread
constexpr int kGroup = 128;   // values that share a scale

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// As many bytes as a pack has pairs of values, moved as one word.
template <int kPack> struct Codes;
template <> struct Codes<4> {
  using Word = uint16_t;
};
template <> struct Codes<8> {
  using Word = uint32_t;
};

// 0 .. 15 as a float that is larger by 2^23: set into its last bits, without a conversion, of which
// a GPU does few at a time. So is the zero, and their difference is exact.
constexpr uint32_t kShiftedBits = 0x4b000000;

template <class T, bool kAligned>
__global__ __launch_bounds__(kThreads) void dequantise(
    const uint8_t* __restrict__ packed, const T* __restrict__ scale,
    const uint8_t* __restrict__ zero, T* __restrict__ w, int64_t packs) {
  constexpr int kPack = 16 / sizeof(T), kBytes = kPack / 2, kOfGroup = kGroup / kPack;
  using Word = typename Codes<kPack>::Word;
  const int64_t first = (int64_t)blockIdx.x * (kThreads * kItems) + threadIdx.x;
  uint32_t codes[kItems];
  T factors[kItems];
  uint8_t zeros[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int64_t pack = first + i * kThreads;
    if (pack >= packs) break;
    if constexpr (kAligned) {
      codes[i] = reinterpret_cast<const Word*>(packed)[pack];
    } else {
      codes[i] = 0;
      for (int b = 0; b < kBytes; ++b) codes[i] |= (uint32_t)packed[pack * kBytes + b] << 8 * b;
    }
    factors[i] = scale[pack / kOfGroup];
    zeros[i] = zero[pack / kOfGroup];
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int64_t pack = first + i * kThreads;
    if (pack >= packs) break;
    const float factor = to_float(factors[i]);
    const float centre = __uint_as_float(kShiftedBits | zeros[i]);
    union {
      uint4 bits;
      T v[kPack];
    } result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float value = __uint_as_float(kShiftedBits | (codes[i] >> 4 * j & 15));
      result.v[j] = from_float<T>((value - centre) * factor);
    }
    if constexpr (kAligned) {
      reinterpret_cast<uint4*>(w)[pack] = result.bits;
    } else {
      for (int j = 0; j < kPack; ++j) w[pack * kPack + j] = result.v[j];
    }
  }
}

template <class T>
hipError_t dequant_int4(const uint8_t* packed, const T* scale, const uint8_t* zero, T* w,
                        int64_t rows, int64_t groups, hipStream_t stream) {
  constexpr int kOfBlock = kThreads * kItems;
  const int64_t packs = rows * groups * (kGroup * (int64_t)sizeof(T) / 16);
  const int64_t blocks = (packs + kOfBlock - 1) / kOfBlock;
  const bool aligned = ((uintptr_t)packed | (uintptr_t)w) % 16 == 0;
  const auto kernel = aligned ? dequantise<T, true> : dequantise<T, false>;
  kernel<<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(packed, scale, zero, w, packs);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t dequant_int4_f16(const uint8_t* packed, const __half* scale,
                                       const uint8_t* zero, __half* w, int64_t rows, int64_t groups,
                                       hipStream_t stream) {
  return dequant_int4(packed, scale, zero, w, rows, groups, stream);
}

extern "C" hipError_t dequant_int4_bf16(const uint8_t* packed, const __hip_bfloat16* scale,
                                        const uint8_t* zero, __hip_bfloat16* w, int64_t rows,
                                        int64_t groups, hipStream_t stream) {
  return dequant_int4(packed, scale, zero, w, rows, groups, stream);
}

extern "C" hipError_t dequant_int4_f32(const uint8_t* packed, const float* scale,
                                       const uint8_t* zero, float* w, int64_t rows, int64_t groups,
                                       hipStream_t stream) {
  return dequant_int4(packed, scale, zero, w, rows, groups, stream);
}
