// Batch normalisation, ReLU and max pooling, windows of 3 x 3 two apart, that reads x once.
//
// A thread has kOut results side by side in each of kRows rows: it reads the 2 * kOut columns of
// them as a pack of 16 bytes a row, and the column to the left, which is a neighbour's. All rows
// are requested before the first is used; of a row, the largest of three columns serve the windows
// above and below. Strips of rows overlap by one row, which the cache has. Where rows are not
// aligned, a thread has one result in each row, and reads elements one by one.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kRows = 4;  // rows of results of a thread

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

// Divides by what fits 32 bits, in 32 bits where that does.
__device__ int64_t divided(int64_t value, uint32_t by) {
  return value >> 32 == 0 ? (int64_t)((uint32_t)value / by) : value / by;
}

struct Sizes {
  int64_t planes;
  int channels, height, width, rows, cols;  // of x, and rows and columns of y
};

template <class T, int kOut, bool kWide>
__global__ __launch_bounds__(kThreads, 3) void pool(const T* __restrict__ x,
                                                    const float* __restrict__ scale,
                                                    const float* __restrict__ shift,
                                                    T* __restrict__ y, Sizes of) {
  constexpr int kIn = 2 * kOut, kLines = 2 * kRows + 1;
  const uint32_t packs = (of.cols + kOut - 1) / kOut, strips = (of.rows + kRows - 1) / kRows;
  const int64_t index = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t line = divided(index, packs), plane = divided(line, strips);
  if (plane >= of.planes) return;
  const int pack = (int)(index - line * packs), strip = (int)(line - plane * strips);
  const int first = 2 * kRows * strip - 1, left = kIn * pack - 1;  // what windows begin with

  Pack<T, kIn> in[kLines];
  T beside[kLines];
  const T* start = x + (plane * of.height + first) * of.width + left;
  const auto has = [&](int r) { return first + r >= 0 && first + r < of.height; };
#pragma unroll
  for (int r = 0; r < kLines; ++r) {
    if (!has(r)) continue;
    const T* from = start + r * of.width;
    if (left >= 0) beside[r] = *from;
    if constexpr (kWide) {
      in[r] = read<T, kIn>(from + 1);
    } else {
#pragma unroll
      for (int j = 0; j < kIn; ++j) {
        if (left + 1 + j < of.width) in[r].v[j] = from[1 + j];
      }
    }
  }
  const int channel = (int)(plane % of.channels);
  const float factor = scale[channel], offset = shift[channel];

  // What the image does not have counts as 0: nothing is less behind a ReLU.
  float above[kOut] = {};
  T* to = y + (plane * of.rows + strip * kRows) * of.cols + pack * kOut;
#pragma unroll
  for (int r = 0; r < kLines; ++r) {
    float largest[kOut] = {};
    if (has(r)) {
      float last = left >= 0 ? fmaf(to_float(beside[r]), factor, offset) : 0.0f;
#pragma unroll
      for (int j = 0; j < kOut; ++j) {
        const float middle = fmaf(to_float(in[r].v[2 * j]), factor, offset);
        largest[j] = fmaxf(largest[j], fmaxf(last, middle));
        if (!kWide && left + 2 + 2 * j >= of.width) continue;
        last = fmaf(to_float(in[r].v[2 * j + 1]), factor, offset);
        largest[j] = fmaxf(largest[j], last);
      }
    }
    // Rows 1 and 2, 3 and 4, and so on end a window; the one before has begun it.
    if (r > 0 && r % 2 == 0 && strip * kRows + r / 2 - 1 < of.rows) {
      Pack<T, kOut> result;
#pragma unroll
      for (int j = 0; j < kOut; ++j) result.v[j] = from_float<T>(fmaxf(above[j], largest[j]));
      write<T, kOut>(to + (r / 2 - 1) * of.cols, result);
    }
#pragma unroll
    for (int j = 0; j < kOut; ++j) {
      above[j] = r % 2 == 0 ? largest[j] : fmaxf(above[j], largest[j]);
    }
  }
}

template <class T, int kOut, bool kWide>
void launch(const T* x, const float* scale, const float* shift, T* y, const Sizes& of,
            hipStream_t stream) {
  const int64_t packs = (of.cols + kOut - 1) / kOut, strips = (of.rows + kRows - 1) / kRows;
  const dim3 grid((unsigned)((of.planes * strips * packs + kThreads - 1) / kThreads));
  pool<T, kOut, kWide><<<grid, dim3(kThreads), 0, stream>>>(x, scale, shift, y, of);
}

template <class T>
hipError_t bn_relu_maxpool(const T* x, const float* scale, const float* shift, T* y,
                           int64_t images, int64_t channels, int64_t height, int64_t width,
                           hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const Sizes of = {images * channels, (int)channels,            (int)height,
                    (int)width,        (int)(height - 1) / 2 + 1, (int)(width - 1) / 2 + 1};
  if (width % kPack == 0 && ((uintptr_t)x | (uintptr_t)y) % 16 == 0) {
    launch<T, kPack / 2, true>(x, scale, shift, y, of, stream);
  } else {
    launch<T, 1, false>(x, scale, shift, y, of, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t bn_relu_maxpool_f32(const float* x, const float* scale, const float* shift,
                                          float* y, int64_t images, int64_t channels,
                                          int64_t height, int64_t width, hipStream_t stream) {
  return bn_relu_maxpool(x, scale, shift, y, images, channels, height, width, stream);
}

extern "C" hipError_t bn_relu_maxpool_f16(const __half* x, const float* scale, const float* shift,
                                          __half* y, int64_t images, int64_t channels,
                                          int64_t height, int64_t width, hipStream_t stream) {
  return bn_relu_maxpool(x, scale, shift, y, images, channels, height, width, stream);
}

extern "C" hipError_t bn_relu_maxpool_bf16(const __hip_bfloat16* x, const float* scale,
                                           const float* shift, __hip_bfloat16* y, int64_t images,
                                           int64_t channels, int64_t height, int64_t width,
                                           hipStream_t stream) {
  return bn_relu_maxpool(x, scale, shift, y, images, channels, height, width, stream);
}
