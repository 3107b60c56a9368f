// Gradients of GEGLU, tanh form, and its result again, at the speed of memory.
//
// With e = exp(-2 |u|), which is at most 1, and r = 1 / (1 + e), the factor (1 + tanh u) / 2 is r
// or e * r, and its product with what is left to 1 is e * r * r: one exponential and one division,
// and nothing overflows or cancels. A thread moves a 16-byte pack of each tensor, all loaded before
// any is used; the first block also takes what is left after the last whole pack. If a pointer is
// not aligned, a pack is one element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// The word that has so many bytes.
template <int kBytes> struct Word;
template <> struct Word<1> { using Type = uint8_t; };
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint2; };
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

struct Gradients {
  float gate, value, h;
};

__device__ Gradients gradients(float gate, float value, float dy) {
  constexpr float kScale = 0.7978845608028654f;  // sqrt(2 / pi)
  constexpr float kCubic = 0.044715f;
  // Beyond 16 the exponential is 0, and the square of a larger gate might be infinite.
  const float size = fminf(fabsf(gate), 16.0f), square = size * size;
  const float e = __expf(-2.0f * kScale * size * (1.0f + kCubic * square));
  const float r = __fdividef(1.0f, 1.0f + e), er = e * r;
  const float half = gate < 0.0f ? er : r;
  const float bend = 2.0f * kScale * (1.0f + 3.0f * kCubic * square);
  const float slope = half + gate * (er * r) * bend;
  const float activated = gate * half;
  return {dy * value * slope, dy * activated, activated * value};
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void geglu_packs(const T* __restrict__ gate,
                                                        const T* __restrict__ value,
                                                        const T* __restrict__ dy,
                                                        T* __restrict__ dgate,
                                                        T* __restrict__ dvalue, T* __restrict__ h,
                                                        int64_t n) {
  const int64_t packs = n / kPack;
  const int64_t last = packs * kPack + threadIdx.x;
  if (kPack > 1 && blockIdx.x == 0 && last < n) {
    const Gradients of = gradients(to_float(gate[last]), to_float(value[last]), to_float(dy[last]));
    dgate[last] = from_float<T>(of.gate);
    dvalue[last] = from_float<T>(of.value);
    h[last] = from_float<T>(of.h);
  }
  const int64_t pack = (int64_t)blockIdx.x * kThreads + threadIdx.x, at = pack * kPack;
  if (pack >= packs) return;
  const auto g = read<T, kPack>(gate + at), v = read<T, kPack>(value + at);
  const auto d = read<T, kPack>(dy + at);
  Pack<T, kPack> of_gate, of_value, of_h;
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    const Gradients of = gradients(to_float(g.v[j]), to_float(v.v[j]), to_float(d.v[j]));
    of_gate.v[j] = from_float<T>(of.gate);
    of_value.v[j] = from_float<T>(of.value);
    of_h.v[j] = from_float<T>(of.h);
  }
  write<T, kPack>(dgate + at, of_gate);
  write<T, kPack>(dvalue + at, of_value);
  write<T, kPack>(h + at, of_h);
}

template <class T, int kPack>
void launch(const T* gate, const T* value, const T* dy, T* dgate, T* dvalue, T* h, int64_t n,
            hipStream_t stream) {
  const int64_t packs = n / kPack > 0 ? n / kPack : 1;
  const dim3 grid((unsigned)((packs + kThreads - 1) / kThreads));
  geglu_packs<T, kPack>
      <<<grid, dim3(kThreads), 0, stream>>>(gate, value, dy, dgate, dvalue, h, n);
}

template <class T>
hipError_t geglu_backward(const T* gate, const T* value, const T* dy, T* dgate, T* dvalue, T* h,
                          int64_t rows, int64_t cols, hipStream_t stream) {
  const uintptr_t places = (uintptr_t)gate | (uintptr_t)value | (uintptr_t)dy | (uintptr_t)dgate |
                           (uintptr_t)dvalue | (uintptr_t)h;
  if (places % 16 == 0) {
    launch<T, 16 / sizeof(T)>(gate, value, dy, dgate, dvalue, h, rows * cols, stream);
  } else {
    launch<T, 1>(gate, value, dy, dgate, dvalue, h, rows * cols, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t geglu_backward_f32(const float* gate, const float* value, const float* dy,
                                         float* dgate, float* dvalue, float* h, int64_t rows,
                                         int64_t cols, hipStream_t stream) {
  return geglu_backward(gate, value, dy, dgate, dvalue, h, rows, cols, stream);
}

extern "C" hipError_t geglu_backward_f16(const __half* gate, const __half* value, const __half* dy,
                                         __half* dgate, __half* dvalue, __half* h, int64_t rows,
                                         int64_t cols, hipStream_t stream) {
  return geglu_backward(gate, value, dy, dgate, dvalue, h, rows, cols, stream);
}

extern "C" hipError_t geglu_backward_bf16(const __hip_bfloat16* gate, const __hip_bfloat16* value,
                                          const __hip_bfloat16* dy, __hip_bfloat16* dgate,
                                          __hip_bfloat16* dvalue, __hip_bfloat16* h, int64_t rows,
                                          int64_t cols, hipStream_t stream) {
  return geglu_backward(gate, value, dy, dgate, dvalue, h, rows, cols, stream);
}
