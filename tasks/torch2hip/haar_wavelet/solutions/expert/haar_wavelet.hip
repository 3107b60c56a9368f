// Two levels of the Haar wavelet transform of images, in one pass.
//
// A thread has kSquares squares of 4 x 4 elements side by side, whose rows make 16 bytes, or 8
// where 16-bit elements have an odd number of squares in a row. All rows are requested before the
// first is used; neighbouring threads write neighbouring elements of all maps. If a tensor is not
// aligned, elements are moved one by one.
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

// kCount floats from or to kCount elements, which are moved as one word where kWide.
template <int kCount> struct Floats {
  float v[kCount];
};

template <bool kWide, int kCount, class T> __device__ void store(T* to, const Floats<kCount>& of) {
  if constexpr (kWide) {
    Pack<T, kCount> pack;
#pragma unroll
    for (int j = 0; j < kCount; ++j) pack.v[j] = from_float<T>(of.v[j]);
    write<T, kCount>(to, pack);
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) to[j] = from_float<T>(of.v[j]);
  }
}

// The four maps of a square, a b above c d.
struct Maps {
  float low, across, down, both;

  __device__ Maps(float a, float b, float c, float d) {
    const float above = a + b, below = c + d, left = a - b, right = c - d;
    low = 0.5f * (above + below);
    across = 0.5f * (left + right);
    down = 0.5f * (above - below);
    both = 0.5f * (left - right);
  }
};

// Divides by what fits 32 bits, in 32 bits where that does.
__device__ int64_t divided(int64_t value, uint32_t by) {
  return value >> 32 == 0 ? (int64_t)((uint32_t)value / by) : value / by;
}

template <class T, int kSquares, bool kWide>
__global__ __launch_bounds__(kThreads) void transform(const T* __restrict__ x,
                                                      T* __restrict__ fine,
                                                      T* __restrict__ coarse, int64_t planes,
                                                      int64_t rows, int64_t cols) {
  constexpr int kWidth = 4 * kSquares;
  const uint32_t packs = (uint32_t)(cols / kSquares);
  const int64_t index = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t line = divided(index, packs), plane = divided(line, (uint32_t)rows);
  const int64_t col = (index - line * packs) * kSquares, row = line - plane * rows;
  if (plane >= planes) return;

  const T* from = x + line * (16 * cols) + 4 * col;
  Pack<T, kWidth> in[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    if constexpr (kWide) {
      in[r] = read<T, kWidth>(from + r * (4 * cols));
    } else {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) in[r].v[j] = from[r * (4 * cols) + j];
    }
  }

  Floats<2 * kSquares> low[2];
  const int64_t map = 4 * rows * cols;  // elements of a map of the first level
  T* out = fine + plane * (3 * map) + row * (4 * cols) + 2 * col;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    Floats<2 * kSquares> across, down, both;
#pragma unroll
    for (int i = 0; i < 2 * kSquares; ++i) {
      const auto &above = in[2 * r], &below = in[2 * r + 1];
      const Maps maps(to_float(above.v[2 * i]), to_float(above.v[2 * i + 1]),
                      to_float(below.v[2 * i]), to_float(below.v[2 * i + 1]));
      low[r].v[i] = maps.low;
      across.v[i] = maps.across;
      down.v[i] = maps.down;
      both.v[i] = maps.both;
    }
    T* to = out + r * (2 * cols);
    store<kWide>(to, across);
    store<kWide>(to + map, down);
    store<kWide>(to + 2 * map, both);
  }
  Floats<kSquares> maps[4];
#pragma unroll
  for (int i = 0; i < kSquares; ++i) {
    const Maps of(low[0].v[2 * i], low[0].v[2 * i + 1], low[1].v[2 * i], low[1].v[2 * i + 1]);
    maps[0].v[i] = of.low;
    maps[1].v[i] = of.across;
    maps[2].v[i] = of.down;
    maps[3].v[i] = of.both;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    store<kWide>(coarse + ((plane * 4 + k) * rows + row) * cols + col, maps[k]);
  }
}

template <class T, int kSquares, bool kWide>
void launch(const T* x, T* fine, T* coarse, int64_t planes, int64_t rows, int64_t cols,
            hipStream_t stream) {
  const int64_t threads = planes * rows * (cols / kSquares);
  const dim3 grid((unsigned)((threads + kThreads - 1) / kThreads));
  transform<T, kSquares, kWide>
      <<<grid, dim3(kThreads), 0, stream>>>(x, fine, coarse, planes, rows, cols);
}

template <class T>
hipError_t haar_wavelet(const T* x, T* fine, T* coarse, int64_t images, int64_t channels,
                        int64_t rows, int64_t cols, hipStream_t stream) {
  constexpr int kSquares = 4 / sizeof(T);
  const int64_t planes = images * channels;
  if (((uintptr_t)x | (uintptr_t)fine | (uintptr_t)coarse) % 16 != 0) {
    launch<T, 1, false>(x, fine, coarse, planes, rows, cols, stream);
  } else if (cols % kSquares == 0) {
    launch<T, kSquares, true>(x, fine, coarse, planes, rows, cols, stream);
  } else {
    launch<T, 1, true>(x, fine, coarse, planes, rows, cols, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t haar_wavelet_bf16(const __hip_bfloat16* x, __hip_bfloat16* fine,
                                        __hip_bfloat16* coarse, int64_t images, int64_t channels,
                                        int64_t rows, int64_t cols, hipStream_t stream) {
  return haar_wavelet(x, fine, coarse, images, channels, rows, cols, stream);
}

extern "C" hipError_t haar_wavelet_f16(const __half* x, __half* fine, __half* coarse,
                                       int64_t images, int64_t channels, int64_t rows, int64_t cols,
                                       hipStream_t stream) {
  return haar_wavelet(x, fine, coarse, images, channels, rows, cols, stream);
}

extern "C" hipError_t haar_wavelet_f32(const float* x, float* fine, float* coarse, int64_t images,
                                       int64_t channels, int64_t rows, int64_t cols,
                                       hipStream_t stream) {
  return haar_wavelet(x, fine, coarse, images, channels, rows, cols, stream);
}
