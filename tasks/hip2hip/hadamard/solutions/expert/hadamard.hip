// Walsh-Hadamard transforms of 128 columns in registers: kLanes lanes hold a group, 32 values each,
// in packs of 16 bytes that alternate between the lanes. Of the seven steps five stay within a lane
// and two are shuffles. All packs are requested before the first is looked at.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kGroup = 128;
constexpr int kLanes = 4;  // of a group
constexpr int kHeld = kGroup / kLanes;
constexpr float kScale = 0.08838834764831845f;  // 1 / sqrt(128)

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// 16 bytes of T, moved as `bits`: a compiler may cut a copy of the elements into pieces.
template <class T> union Pack {
  static constexpr int kSize = 16 / sizeof(T);
  uint4 bits;
  T v[kSize];
};

// The signs of a pack's columns.
template <int kPack> union Signs;
template <> union Signs<4> {
  uint32_t bits;
  uint8_t v[4];
};
template <> union Signs<8> {
  uint2 bits;
  uint8_t v[8];
};

template <class T, bool kAligned>
__global__ __launch_bounds__(kThreads, kAligned && sizeof(T) == 2 ? 4 : 3) void transform(
    const T* __restrict__ x, const int8_t* __restrict__ sign, T* __restrict__ y, uint32_t total,
    uint32_t groups) {
  constexpr int kPack = Pack<T>::kSize, kPacks = kHeld / kPack;
  const uint32_t group = (blockIdx.x * kThreads + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  const bool inside = group < total;  // lanes without a group take part in shuffles
  const int64_t first = (int64_t)group * kGroup + lane * kPack;
  const int8_t* signs = sign + (int64_t)(group % groups) * kGroup + lane * kPack;

  Pack<T> packs[kPacks];
  Signs<kPack> negative[kPacks];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (!inside) continue;
    const int at = p * kLanes * kPack;
    if constexpr (kAligned) {
      packs[p].bits = *reinterpret_cast<const uint4*>(x + first + at);
      negative[p].bits = reinterpret_cast<const Signs<kPack>*>(signs + at)->bits;
    } else {
      for (int j = 0; j < kPack; ++j) packs[p].v[j] = x[first + at + j];
      for (int j = 0; j < kPack; ++j) negative[p].v[j] = (uint8_t)signs[at + j];
    }
  }
  float v[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const uint32_t flip = (uint32_t)(negative[i / kPack].v[i % kPack] & 0x80) << 24;
    v[i] = __uint_as_float(__float_as_uint(to_float(packs[i / kPack].v[i % kPack])) ^ flip);
  }

#pragma unroll
  for (int apart = 1; apart < kHeld; apart *= 2) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      if (i & apart) continue;
      const float a = v[i], b = v[i + apart];
      v[i] = a + b;
      v[i + apart] = a - b;
    }
  }
#pragma unroll
  for (int apart = 1; apart < kLanes; apart *= 2) {
    const float side = lane & apart ? -1.0f : 1.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) v[i] = fmaf(v[i], side, __shfl_xor(v[i], apart, kLanes));
  }

#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (!inside) continue;
    const int at = p * kLanes * kPack;
    Pack<T> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) result.v[j] = from_float<T>(v[p * kPack + j] * kScale);
    if constexpr (kAligned) {
      *reinterpret_cast<uint4*>(y + first + at) = result.bits;
    } else {
      for (int j = 0; j < kPack; ++j) y[first + at + j] = result.v[j];
    }
  }
}

template <class T>
hipError_t hadamard(const T* x, const int8_t* sign, T* y, int64_t rows, int64_t groups,
                    hipStream_t stream) {
  const int64_t total = rows * groups;  // less than 2^26
  const int64_t blocks = (total * kLanes + kThreads - 1) / kThreads;
  const bool aligned = ((uintptr_t)x | (uintptr_t)sign | (uintptr_t)y) % 16 == 0;
  const auto kernel = aligned ? transform<T, true> : transform<T, false>;
  kernel<<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, sign, y, (uint32_t)total,
                                                                (uint32_t)groups);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t hadamard_f16(const __half* x, const int8_t* sign, __half* y, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return hadamard(x, sign, y, rows, groups, stream);
}

extern "C" hipError_t hadamard_bf16(const __hip_bfloat16* x, const int8_t* sign, __hip_bfloat16* y,
                                    int64_t rows, int64_t groups, hipStream_t stream) {
  return hadamard(x, sign, y, rows, groups, stream);
}

extern "C" hipError_t hadamard_f32(const float* x, const int8_t* sign, float* y, int64_t rows,
                                   int64_t groups, hipStream_t stream) {
  return hadamard(x, sign, y, rows, groups, stream);
}
