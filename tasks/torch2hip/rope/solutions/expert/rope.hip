// Rotary position embedding, one pass.
//
// A thread owns one 16-byte pack of a position's first half and the matching pack of its
// second half. It keeps their cos and sin in registers and applies them to several heads,
// so the float32 tables, larger per element than float16 data, are read once for
// kHeads heads. Packs are single elements where `half` or a pointer is not aligned.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 128;
constexpr int kHeads = 2;                  // (batch, head) pairs of a thread
constexpr int64_t kMaxGridY = 65535;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// One element, or as many as 16 bytes hold. They are moved as `bits`: a compiler may cut a
// copy of the elements into pieces.
template <class T, bool kWide> union Pack {
  static constexpr int kSize = 1;
  T bits;
  T v[kSize];
};

template <class T> union Pack<T, true> {
  static constexpr int kSize = 16 / sizeof(T);
  uint4 bits;
  T v[kSize];
};

template <int kSize> struct alignas(kSize == 1 ? 4 : 16) Angles {
  float v[kSize];
};

// Writes what is not read again: lines that are written in halves must not leave the cache between.
template <class Bits> __device__ void store(Bits* to, Bits bits) {
#ifdef __HIP_PLATFORM_NVIDIA__
  __stcs(to, bits);
#else
  *to = bits;
#endif
}

// blockIdx.x: packs of the tables; blockIdx.y: groups of kHeads planes, a plane being the
// [seq, 2 * half] of one (batch, head).
template <class T, bool kWide>
__global__ __launch_bounds__(kThreads) void rope_packs(const T* __restrict__ x,
                                                       const float* __restrict__ cos,
                                                       const float* __restrict__ sin,
                                                       T* __restrict__ y, int64_t planes,
                                                       int64_t seq, int64_t half) {
  using Unit = Pack<T, kWide>;
  constexpr int kSize = Unit::kSize;
  using Bits = decltype(Unit::bits);
  const int64_t element = ((int64_t)blockIdx.x * kThreads + threadIdx.x) * kSize;
  if (element >= seq * half) return;
  const auto c = *reinterpret_cast<const Angles<kSize>*>(cos + element);
  const auto s = *reinterpret_cast<const Angles<kSize>*>(sin + element);
  // Before row r of a plane lie 2 r halves, before the same row of a table r.
  const int64_t row = (unsigned)element / (unsigned)half;  // tables have less than 2^32 elements
  const int64_t first = element + row * half;
  const int64_t plane_size = seq * half * 2;

  for (int64_t group = (int64_t)blockIdx.y * kHeads; group < planes;
       group += (int64_t)gridDim.y * kHeads) {
    Unit x1[kHeads], x2[kHeads];
#pragma unroll
    for (int u = 0; u < kHeads; ++u) {
      const int64_t plane = group + u;
      const T* in = x + plane * plane_size + first;
      if (plane < planes) x1[u].bits = *reinterpret_cast<const Bits*>(in);
      if (plane < planes) x2[u].bits = *reinterpret_cast<const Bits*>(in + half);
    }
#pragma unroll
    for (int u = 0; u < kHeads; ++u) {
      const int64_t plane = group + u;
      if (plane >= planes) continue;
      Unit y1, y2;
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float a = to_float(x1[u].v[i]), b = to_float(x2[u].v[i]);
        y1.v[i] = from_float<T>(a * c.v[i] - b * s.v[i]);
        y2.v[i] = from_float<T>(b * c.v[i] + a * s.v[i]);
      }
      T* out = y + plane * plane_size + first;
      store(reinterpret_cast<Bits*>(out), y1.bits);
      store(reinterpret_cast<Bits*>(out + half), y2.bits);
    }
  }
}

template <class T, bool kWide>
void launch(const T* x, const float* cos, const float* sin, T* y, int64_t planes, int64_t seq,
            int64_t half, hipStream_t stream) {
  const int64_t packs = seq * half / Pack<T, kWide>::kSize;
  const int64_t groups = (planes + kHeads - 1) / kHeads;
  const dim3 grid((unsigned)((packs + kThreads - 1) / kThreads),
                  (unsigned)(groups < kMaxGridY ? groups : kMaxGridY));
  rope_packs<T, kWide><<<grid, dim3(kThreads), 0, stream>>>(x, cos, sin, y, planes, seq, half);
}

bool aligned(const void* p) { return (uintptr_t)p % 16 == 0; }

template <class T>
hipError_t rope(const T* x, const float* cos, const float* sin, T* y, int64_t planes, int64_t seq,
                int64_t half, hipStream_t stream) {
  if (half % Pack<T, true>::kSize == 0 && aligned(x) && aligned(cos) && aligned(sin) &&
      aligned(y)) {
    launch<T, true>(x, cos, sin, y, planes, seq, half, stream);
  } else {
    launch<T, false>(x, cos, sin, y, planes, seq, half, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t rope_f32(const float* x, const float* cos, const float* sin, float* y,
                               int64_t batch, int64_t heads, int64_t seq, int64_t half,
                               hipStream_t stream) {
  return rope(x, cos, sin, y, batch * heads, seq, half, stream);
}

extern "C" hipError_t rope_f16(const __half* x, const float* cos, const float* sin, __half* y,
                               int64_t batch, int64_t heads, int64_t seq, int64_t half,
                               hipStream_t stream) {
  return rope(x, cos, sin, y, batch * heads, seq, half, stream);
}

extern "C" hipError_t rope_bf16(const __hip_bfloat16* x, const float* cos, const float* sin,
                                __hip_bfloat16* y, int64_t batch, int64_t heads, int64_t seq,
                                int64_t half, hipStream_t stream) {
  return rope(x, cos, sin, y, batch * heads, seq, half, stream);
}
