// The backward pass of rotary embedding and of the split into queries, keys and values, at once.
//
// A thread owns a 16-byte pack of the first half and the matching pack of the second half of kHeads
// heads of a token, all requested before it looks up the token's angles, which it keeps in
// registers for its heads. Heads of a thread lie apart, so that threads side by side have heads
// side by side. Packs are single elements where halves or pointers are not aligned.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kHeads = 4;  // heads of a thread

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

// A float beside each element of a pack, moved as packs of up to 16 bytes.
template <int kPack> struct Angles {
  float v[kPack];
};

template <int kPack> __device__ Angles<kPack> read_angles(const float* from) {
  constexpr int kWide = kPack < 4 ? kPack : 4;
  Angles<kPack> angles;
#pragma unroll
  for (int j = 0; j < kPack; j += kWide) {
    const auto pack = read<float, kWide>(from + j);
#pragma unroll
    for (int k = 0; k < kWide; ++k) angles.v[j + k] = pack.v[k];
  }
  return angles;
}

struct Sizes {
  int64_t tokens;
  uint32_t heads, kv_heads, half;
};

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void rotate_back(
    const T* __restrict__ dq, const T* __restrict__ dk, const T* __restrict__ dv,
    const float* __restrict__ cos, const float* __restrict__ sin,
    const int32_t* __restrict__ position, T* __restrict__ dqkv, Sizes of) {
  const uint32_t turned = of.heads + of.kv_heads, all = turned + of.kv_heads;
  const uint32_t packs = of.half / kPack, groups = (all + kHeads - 1) / kHeads;
  // At most 2^16 tokens with 96 groups of 128 packs: less than 2^32 threads.
  const uint32_t index = blockIdx.x * kThreads + threadIdx.x;
  const uint32_t token = index / (groups * packs), within = index % (groups * packs);
  const uint32_t group = within / packs, col = within % packs * kPack;
  if (token >= of.tokens) return;

  Pack<T, kPack> low[kHeads], high[kHeads];
#pragma unroll
  for (int u = 0; u < kHeads; ++u) {
    const uint32_t head = group + u * groups;
    if (head >= all) continue;
    const T* from = dq;
    uint32_t count = of.heads, place = head;
    if (head >= turned) {
      from = dv, count = of.kv_heads, place = head - turned;
    } else if (head >= of.heads) {
      from = dk, count = of.kv_heads, place = head - of.heads;
    }
    from += ((int64_t)token * count + place) * (2 * of.half) + col;
    low[u] = read<T, kPack>(from);
    high[u] = read<T, kPack>(from + of.half);
  }
  const int64_t angles = (int64_t)position[token] * of.half + col;
  const auto c = read_angles<kPack>(cos + angles), s = read_angles<kPack>(sin + angles);
#pragma unroll
  for (int u = 0; u < kHeads; ++u) {
    const uint32_t head = group + u * groups;
    if (head >= all) continue;
    if (head < turned) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float a = to_float(low[u].v[j]), b = to_float(high[u].v[j]);
        low[u].v[j] = from_float<T>(a * c.v[j] + b * s.v[j]);
        high[u].v[j] = from_float<T>(b * c.v[j] - a * s.v[j]);
      }
    }
    T* to = dqkv + ((int64_t)token * all + head) * (2 * of.half) + col;
    write<T, kPack>(to, low[u]);
    write<T, kPack>(to + of.half, high[u]);
  }
}

template <class T>
hipError_t qkv_rope_backward(const T* dq, const T* dk, const T* dv, const float* cos,
                             const float* sin, const int32_t* position, T* dqkv, int64_t tokens,
                             int64_t heads, int64_t kv_heads, int64_t half, int64_t,
                             hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)dq | (uintptr_t)dk | (uintptr_t)dv | (uintptr_t)cos |
                           (uintptr_t)sin | (uintptr_t)dqkv;
  const bool wide = half % kPack == 0 && places % 16 == 0;
  const Sizes of = {tokens, (uint32_t)heads, (uint32_t)kv_heads, (uint32_t)half};
  const int64_t groups = (heads + 2 * kv_heads + kHeads - 1) / kHeads;
  const int64_t threads = tokens * groups * (wide ? half / kPack : half);
  const dim3 grid((unsigned)((threads + kThreads - 1) / kThreads));
  if (wide) {
    rotate_back<T, kPack>
        <<<grid, dim3(kThreads), 0, stream>>>(dq, dk, dv, cos, sin, position, dqkv, of);
  } else {
    rotate_back<T, 1>
        <<<grid, dim3(kThreads), 0, stream>>>(dq, dk, dv, cos, sin, position, dqkv, of);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t qkv_rope_backward_f32(const float* dq, const float* dk, const float* dv,
                                            const float* cos, const float* sin,
                                            const int32_t* position, float* dqkv, int64_t tokens,
                                            int64_t heads, int64_t kv_heads, int64_t half,
                                            int64_t places, hipStream_t stream) {
  return qkv_rope_backward(dq, dk, dv, cos, sin, position, dqkv, tokens, heads, kv_heads, half,
                           places, stream);
}

extern "C" hipError_t qkv_rope_backward_f16(const __half* dq, const __half* dk, const __half* dv,
                                            const float* cos, const float* sin,
                                            const int32_t* position, __half* dqkv, int64_t tokens,
                                            int64_t heads, int64_t kv_heads, int64_t half,
                                            int64_t places, hipStream_t stream) {
  return qkv_rope_backward(dq, dk, dv, cos, sin, position, dqkv, tokens, heads, kv_heads, half,
                           places, stream);
}

extern "C" hipError_t qkv_rope_backward_bf16(const __hip_bfloat16* dq, const __hip_bfloat16* dk,
                                             const __hip_bfloat16* dv, const float* cos,
                                             const float* sin, const int32_t* position,
                                             __hip_bfloat16* dqkv, int64_t tokens, int64_t heads,
                                             int64_t kv_heads, int64_t half, int64_t places,
                                             hipStream_t stream) {
  return qkv_rope_backward(dq, dk, dv, cos, sin, position, dqkv, tokens, heads, kv_heads, half,
                           places, stream);
}
