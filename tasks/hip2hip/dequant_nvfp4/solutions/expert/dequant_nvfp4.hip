// Weights in NVFP4 to floating point: a thread writes packs of 16 bytes. Those of a wave lie next
// to each other, and so do the bytes that it reads for them; a thread requests the bytes of several
// packs before it looks at the first. A tensor that is not aligned is written element by element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kItems = 4;     // packs of a thread
constexpr int kGroup = 16;    // values that share a scale

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

// The few bits of the exponent and the mantissa become the last of a float's exponent and the first
// of its mantissa. The product makes up for the exponent's bias. It is exact, also for subnormal
// values, which are subnormal floats before.
__device__ float from_e2m1(uint32_t bits) {
  return __uint_as_float((bits & 8) << 28 | (bits & 7) << 22) * 0x1p126f;
}

__device__ float from_e4m3(uint32_t bits) { return __uint_as_float(bits << 20) * 0x1p120f; }

template <class T, bool kAligned>
__global__ __launch_bounds__(kThreads) void dequantise(
    const uint8_t* __restrict__ packed, const uint8_t* __restrict__ scale,
    const float* __restrict__ tensor_scale, T* __restrict__ w, int64_t packs) {
  constexpr int kPack = 16 / sizeof(T), kBytes = kPack / 2, kOfGroup = kGroup / kPack;
  using Word = typename Codes<kPack>::Word;
  const int64_t first = (int64_t)blockIdx.x * (kThreads * kItems) + threadIdx.x;
  uint32_t codes[kItems];
  uint8_t factors[kItems];
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
  }
  const float of_tensor = tensor_scale[0];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int64_t pack = first + i * kThreads;
    if (pack >= packs) break;
    const float factor = from_e4m3(factors[i]) * of_tensor;
    union {
      uint4 bits;
      T v[kPack];
    } result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      result.v[j] = from_float<T>(from_e2m1(codes[i] >> 4 * j) * factor);
    }
    if constexpr (kAligned) {
      reinterpret_cast<uint4*>(w)[pack] = result.bits;
    } else {
      for (int j = 0; j < kPack; ++j) w[pack * kPack + j] = result.v[j];
    }
  }
}

template <class T>
hipError_t dequant_nvfp4(const uint8_t* packed, const uint8_t* scale, const float* tensor_scale,
                         T* w, int64_t rows, int64_t groups, hipStream_t stream) {
  constexpr int kOfBlock = kThreads * kItems;
  const int64_t packs = rows * groups * (kGroup * (int64_t)sizeof(T) / 16);
  const int64_t blocks = (packs + kOfBlock - 1) / kOfBlock;
  const bool aligned = ((uintptr_t)packed | (uintptr_t)w) % 16 == 0;
  const auto kernel = aligned ? dequantise<T, true> : dequantise<T, false>;
  kernel<<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(packed, scale, tensor_scale, w,
                                                                packs);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t dequant_nvfp4_bf16(const uint8_t* packed, const uint8_t* scale,
                                         const float* tensor_scale, __hip_bfloat16* w, int64_t rows,
                                         int64_t groups, hipStream_t stream) {
  return dequant_nvfp4(packed, scale, tensor_scale, w, rows, groups, stream);
}

extern "C" hipError_t dequant_nvfp4_f16(const uint8_t* packed, const uint8_t* scale,
                                        const float* tensor_scale, __half* w, int64_t rows,
                                        int64_t groups, hipStream_t stream) {
  return dequant_nvfp4(packed, scale, tensor_scale, w, rows, groups, stream);
}

extern "C" hipError_t dequant_nvfp4_f32(const uint8_t* packed, const uint8_t* scale,
                                        const float* tensor_scale, float* w, int64_t rows,
                                        int64_t groups, hipStream_t stream) {
  return dequant_nvfp4(packed, scale, tensor_scale, w, rows, groups, stream);
}
