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

constexpr int kThreads = 256;
constexpr int kHeads = 8;                  // (batch, head) pairs of a thread
constexpr int kUnroll = 4;                 // of them in flight
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

// kSize elements of T; up to 16 bytes are moved by one instruction.
template <class T, int kSize> struct alignas(kSize * sizeof(T) < 16 ? kSize * sizeof(T) : 16) Pack {
  T v[kSize];
};

// blockIdx.x: packs of the tables; blockIdx.y: groups of kHeads planes, a plane being the
// [seq, 2 * half] of one (batch, head).
template <class T, int kSize>
__global__ __launch_bounds__(kThreads) void rope_packs(const T* __restrict__ x,
                                                       const float* __restrict__ cos,
                                                       const float* __restrict__ sin,
                                                       T* __restrict__ y, int64_t planes,
                                                       int64_t seq, int64_t half) {
  using Unit = Pack<T, kSize>;
  using Angles = Pack<float, kSize>;
  const int64_t element = ((int64_t)blockIdx.x * kThreads + threadIdx.x) * kSize;
  if (element >= seq * half) return;
  const Angles c = *reinterpret_cast<const Angles*>(cos + element);
  const Angles s = *reinterpret_cast<const Angles*>(sin + element);
  // Before row r of a plane lie 2 r halves, before the same row of a table r.
  const int64_t first = element + element / half * half;
  const int64_t plane_size = seq * half * 2;

  for (int64_t group = (int64_t)blockIdx.y * kHeads; group < planes;
       group += (int64_t)gridDim.y * kHeads) {
#pragma unroll
    for (int start = 0; start < kHeads; start += kUnroll) {
      Unit x1[kUnroll], x2[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t plane = group + start + u;
        if (plane >= planes) break;
        const T* in = x + plane * plane_size + first;
        x1[u] = *reinterpret_cast<const Unit*>(in);
        x2[u] = *reinterpret_cast<const Unit*>(in + half);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t plane = group + start + u;
        if (plane >= planes) break;
        Unit y1, y2;
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          const float a = to_float(x1[u].v[i]), b = to_float(x2[u].v[i]);
          y1.v[i] = from_float<T>(a * c.v[i] - b * s.v[i]);
          y2.v[i] = from_float<T>(b * c.v[i] + a * s.v[i]);
        }
        T* out = y + plane * plane_size + first;
        *reinterpret_cast<Unit*>(out) = y1;
        *reinterpret_cast<Unit*>(out + half) = y2;
      }
    }
  }
}

template <class T, int kSize>
void launch(const T* x, const float* cos, const float* sin, T* y, int64_t planes, int64_t seq,
            int64_t half, hipStream_t stream) {
  const int64_t packs = seq * half / kSize;
  const int64_t groups = (planes + kHeads - 1) / kHeads;
  const dim3 grid((unsigned)((packs + kThreads - 1) / kThreads),
                  (unsigned)(groups < kMaxGridY ? groups : kMaxGridY));
  rope_packs<T, kSize><<<grid, dim3(kThreads), 0, stream>>>(x, cos, sin, y, planes, seq, half);
}

bool aligned(const void* p) { return (uintptr_t)p % 16 == 0; }

template <class T>
hipError_t rope(const T* x, const float* cos, const float* sin, T* y, int64_t planes, int64_t seq,
                int64_t half, hipStream_t stream) {
  constexpr int kSize = 16 / sizeof(T);
  if (half % kSize == 0 && aligned(x) && aligned(cos) && aligned(sin) && aligned(y)) {
    launch<T, kSize>(x, cos, sin, y, planes, seq, half, stream);
  } else {
    launch<T, 1>(x, cos, sin, y, planes, seq, half, stream);
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
