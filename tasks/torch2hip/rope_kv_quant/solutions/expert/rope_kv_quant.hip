// Rotation of keys and int8 quantisation of keys and values by token and head, in one pass.
//
// A head is shared by the fewest lanes, a power of two and at most 32, that hold it in a pack of 16
// bytes of each half, or in kItems elements of each half where packs are not aligned. A lane has
// both halves of keys and values in registers; a token's heads lie side by side in a block, and
// find its angles in the cache. Shuffles stay within 32 lanes: one source for waves of 32 and 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWave = 32;  // lanes that reduce by shuffles, also in waves of 64

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

// v, which is in -127 .. 127, rounded to the nearest integer: the last byte of the result. Beside
// 3 * 2^22 float32 has no room for a fraction.
__device__ uint32_t rounded(float v, float inverse) {
  return __float_as_uint(fmaf(v, inverse, 12582912.0f));
}

// Writes the last bytes of kPack words side by side.
template <int kPack> __device__ void write_bytes(int8_t* to, const uint32_t (&words)[kPack]) {
  if constexpr (kPack == 1) {
    *to = (int8_t)words[0];
  } else {
    Pack<uint32_t, kPack / 4> packed;
#pragma unroll
    for (int j = 0; j < kPack; j += 4) {
      const uint32_t low = __byte_perm(words[j], words[j + 1], 0x0040);
      packed.v[j / 4] = __byte_perm(low, __byte_perm(words[j + 2], words[j + 3], 0x0040), 0x5410);
    }
    reinterpret_cast<Pack<uint32_t, kPack / 4>*>(to)->bits = packed.bits;
  }
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

// A head's part that is in a lane: packs of the first half, and the same of the second.
template <int kPack, int kItems> struct Part {
  float v[2][kItems][kPack];
};

template <int kPack, int kItems>
__device__ void quantise(const Part<kPack, kItems>& part, int lane, int lanes, int half,
                         int8_t* __restrict__ q, float* __restrict__ scale) {
  const auto column = [&](int item) { return (item * lanes + lane) * kPack; };
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) >= half) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      largest = fmaxf(largest, fmaxf(fabsf(part.v[0][i][j]), fabsf(part.v[1][i][j])));
    }
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor(largest, distance, kWave));
  }
  const float step = largest / 127.0f;
  if (q == nullptr) return;
  if (lane == 0) *scale = step;
  // A step may be so small that its inverse is infinite; such a head is multiplied up first.
  const float lift = step < 1e-30f ? 1.8446744e19f : 1.0f;
  const float inverse = step > 0.0f ? 1.0f / (step * lift) : 0.0f;
#pragma unroll
  for (int side = 0; side < 2; ++side) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (column(i) >= half) continue;
      uint32_t words[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) words[j] = rounded(part.v[side][i][j] * lift, inverse);
      write_bytes<kPack>(q + side * half + column(i), words);
    }
  }
}

template <class T, int kPack, int kItems>
__global__ __launch_bounds__(kThreads) void rotate_and_quantise(
    const T* __restrict__ k, const T* __restrict__ v, const float* __restrict__ cos,
    const float* __restrict__ sin, int8_t* __restrict__ k_q, float* __restrict__ k_scale,
    int8_t* __restrict__ v_q, float* __restrict__ v_scale, uint32_t all, uint32_t heads, int half,
    int lanes) {
  const int lane = threadIdx.x % lanes;
  const uint32_t head = blockIdx.x * (kThreads / lanes) + threadIdx.x / lanes;  // of all tokens
  const int end = head < all ? half : 0;  // lanes beyond the last head go along to the shuffles
  const auto column = [&](int item) { return (item * lanes + lane) * kPack; };
  const int64_t start = (int64_t)head * (2 * half), angles = (int64_t)(head / heads) * half;

  Pack<T, kPack> keys[2][kItems], values[2][kItems];
  Angles<kPack> c[kItems], s[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) >= end) continue;
    keys[0][i] = read<T, kPack>(k + start + column(i));
    keys[1][i] = read<T, kPack>(k + start + half + column(i));
    values[0][i] = read<T, kPack>(v + start + column(i));
    values[1][i] = read<T, kPack>(v + start + half + column(i));
    c[i] = read_angles<kPack>(cos + angles + column(i));
    s[i] = read_angles<kPack>(sin + angles + column(i));
  }
  Part<kPack, kItems> turned, plain;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) >= end) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float low = to_float(keys[0][i].v[j]), high = to_float(keys[1][i].v[j]);
      turned.v[0][i][j] = low * c[i].v[j] - high * s[i].v[j];
      turned.v[1][i][j] = high * c[i].v[j] + low * s[i].v[j];
      plain.v[0][i][j] = to_float(values[0][i].v[j]);
      plain.v[1][i][j] = to_float(values[1][i].v[j]);
    }
  }
  const bool inside = head < all;
  quantise(turned, lane, lanes, end, inside ? k_q + start : nullptr, k_scale + head);
  quantise(plain, lane, lanes, end, inside ? v_q + start : nullptr, v_scale + head);
}

template <class T> struct Tensors {
  const T *k, *v;
  const float *cos, *sin;
  int8_t* k_q;
  float* k_scale;
  int8_t* v_q;
  float* v_scale;
  int64_t tokens, heads, half;
  hipStream_t stream;
};

template <class T, int kPack, int kItems> void launch(const Tensors<T>& of) {
  int lanes = 1;
  while (lanes < kWave && lanes * kPack < of.half) lanes *= 2;
  const int64_t all = of.tokens * of.heads, in_block = kThreads / lanes;
  const dim3 grid((unsigned)((all + in_block - 1) / in_block));
  rotate_and_quantise<T, kPack, kItems><<<grid, dim3(kThreads), 0, of.stream>>>(
      of.k, of.v, of.cos, of.sin, of.k_q, of.k_scale, of.v_q, of.v_scale, (uint32_t)all,
      (uint32_t)of.heads, (int)of.half, lanes);
}

template <class T>
hipError_t rope_kv_quant(const T* k, const T* v, const float* cos, const float* sin, int8_t* k_q,
                         float* k_scale, int8_t* v_q, float* v_scale, int64_t tokens,
                         int64_t heads, int64_t half, hipStream_t stream) {
  const Tensors<T> of = {k,   v,       cos,    sin,   k_q,  k_scale,
                         v_q, v_scale, tokens, heads, half, stream};
  constexpr int kPack = 16 / sizeof(T), kLongest = 128;  // elements of the longest half
  const uintptr_t places = (uintptr_t)k | (uintptr_t)v | (uintptr_t)cos | (uintptr_t)sin |
                           (uintptr_t)k_q | (uintptr_t)v_q;
  if (half % kPack == 0 && places % 16 == 0) {
    launch<T, kPack, 1>(of);
  } else if (half <= kWave) {
    launch<T, 1, 1>(of);
  } else {
    launch<T, 1, kLongest / kWave>(of);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t rope_kv_quant_bf16(const __hip_bfloat16* k, const __hip_bfloat16* v,
                                         const float* cos, const float* sin, int8_t* k_q,
                                         float* k_scale, int8_t* v_q, float* v_scale,
                                         int64_t tokens, int64_t heads, int64_t half,
                                         hipStream_t stream) {
  return rope_kv_quant(k, v, cos, sin, k_q, k_scale, v_q, v_scale, tokens, heads, half, stream);
}

extern "C" hipError_t rope_kv_quant_f16(const __half* k, const __half* v, const float* cos,
                                        const float* sin, int8_t* k_q, float* k_scale, int8_t* v_q,
                                        float* v_scale, int64_t tokens, int64_t heads, int64_t half,
                                        hipStream_t stream) {
  return rope_kv_quant(k, v, cos, sin, k_q, k_scale, v_q, v_scale, tokens, heads, half, stream);
}

extern "C" hipError_t rope_kv_quant_f32(const float* k, const float* v, const float* cos,
                                        const float* sin, int8_t* k_q, float* k_scale, int8_t* v_q,
                                        float* v_scale, int64_t tokens, int64_t heads, int64_t half,
                                        hipStream_t stream) {
  return rope_kv_quant(k, v, cos, sin, k_q, k_scale, v_q, v_scale, tokens, heads, half, stream);
}
