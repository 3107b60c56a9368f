// Frames in NV12 to normalised red, green and blue, in one pass.
//
// A thread has kCols pixels of two rows, one below the other, which share their chroma: as many as
// make 16 bytes of a row of y, or two where rows are not aligned. If a tensor is not aligned,
// elements are moved one by one.
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

// kCount elements, moved kPack at a time.
template <class T, int kCount> struct Elements {
  T v[kCount];
};

template <int kPack, int kCount, class T> __device__ Elements<T, kCount> load(const T* from) {
  Elements<T, kCount> elements;
#pragma unroll
  for (int i = 0; i < kCount; i += kPack) {
    const auto pack = read<T, kPack>(from + i);
#pragma unroll
    for (int j = 0; j < kPack; ++j) elements.v[i + j] = pack.v[j];
  }
  return elements;
}

template <int kPack, int kCount, class T>
__device__ void store(T* to, const Elements<T, kCount>& elements) {
#pragma unroll
  for (int i = 0; i < kCount; i += kPack) {
    Pack<T, kPack> pack;
#pragma unroll
    for (int j = 0; j < kPack; ++j) pack.v[j] = elements.v[i + j];
    write<T, kPack>(to + i, pack);
  }
}

// blockIdx.y is a frame, blockIdx.x has some of its threads.
template <class T, int kCols, int kPack>
__global__ __launch_bounds__(kThreads) void convert(const uint8_t* __restrict__ luma,
                                                    const uint8_t* __restrict__ chroma,
                                                    const T* __restrict__ mean,
                                                    const T* __restrict__ factor,
                                                    T* __restrict__ y, int64_t rows, int64_t cols) {
  const uint32_t packs = (uint32_t)(2 * cols / kCols);
  const uint32_t index = blockIdx.x * kThreads + threadIdx.x;
  const uint32_t row = index / packs, col = index % packs * kCols;
  if (row >= rows) return;
  const int64_t width = 2 * cols, frame = blockIdx.y, first = frame * 2 * rows + 2 * row;
  const auto colours = load<kPack, kCols>(chroma + (frame * rows + row) * width + col);
  Elements<uint8_t, kCols> light[2];
#pragma unroll
  for (int k = 0; k < 2; ++k) light[k] = load<kPack, kCols>(luma + (first + k) * width + col);

  // What chroma adds to each channel, by pairs of columns.
  float added[3][kCols / 2];
#pragma unroll
  for (int i = 0; i < kCols / 2; ++i) {
    const float u = (float)colours.v[2 * i] - 128.0f, v = (float)colours.v[2 * i + 1] - 128.0f;
    added[0][i] = 1.7927f * v;
    added[1][i] = -0.2132f * u - 0.5329f * v;
    added[2][i] = 2.1124f * u;
  }
  float means[3], factors[3];
#pragma unroll
  for (int ch = 0; ch < 3; ++ch) {
    means[ch] = to_float(mean[ch]);
    factors[ch] = to_float(factor[ch]);
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    Elements<T, kCols> result[3];
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      const float bright = 1.1644f * ((float)light[k].v[i] - 16.0f);
#pragma unroll
      for (int ch = 0; ch < 3; ++ch) {
        const float value = fminf(fmaxf(bright + added[ch][i / 2], 0.0f), 255.0f);
        result[ch].v[i] = from_float<T>((value - means[ch]) * factors[ch]);
      }
    }
#pragma unroll
    for (int ch = 0; ch < 3; ++ch) {
      T* to = y + ((frame * 3 + ch) * 2 * rows + 2 * row + k) * width + col;
      store<kPack, kCols>(to, result[ch]);
    }
  }
}

template <class T, int kCols, int kPack>
void launch(const uint8_t* luma, const uint8_t* chroma, const T* mean, const T* factor, T* y,
            int64_t frames, int64_t rows, int64_t cols, hipStream_t stream) {
  const int64_t threads = rows * (2 * cols / kCols);
  const dim3 grid((unsigned)((threads + kThreads - 1) / kThreads), (unsigned)frames);
  convert<T, kCols, kPack>
      <<<grid, dim3(kThreads), 0, stream>>>(luma, chroma, mean, factor, y, rows, cols);
}

template <class T>
hipError_t nv12_to_rgb(const uint8_t* luma, const uint8_t* chroma, const T* mean, const T* factor,
                       T* y, int64_t frames, int64_t rows, int64_t cols, hipStream_t stream) {
  constexpr int kCols = 16 / sizeof(T);
  const bool aligned = ((uintptr_t)luma | (uintptr_t)chroma | (uintptr_t)y) % 16 == 0;
  if (aligned && 2 * cols % kCols == 0) {
    launch<T, kCols, kCols>(luma, chroma, mean, factor, y, frames, rows, cols, stream);
  } else if (aligned) {
    launch<T, 2, 2>(luma, chroma, mean, factor, y, frames, rows, cols, stream);
  } else {
    launch<T, 2, 1>(luma, chroma, mean, factor, y, frames, rows, cols, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t nv12_to_rgb_f16(const uint8_t* luma, const uint8_t* chroma,
                                      const __half* mean, const __half* factor, __half* y,
                                      int64_t frames, int64_t rows, int64_t cols,
                                      hipStream_t stream) {
  return nv12_to_rgb(luma, chroma, mean, factor, y, frames, rows, cols, stream);
}

extern "C" hipError_t nv12_to_rgb_bf16(const uint8_t* luma, const uint8_t* chroma,
                                       const __hip_bfloat16* mean, const __hip_bfloat16* factor,
                                       __hip_bfloat16* y, int64_t frames, int64_t rows,
                                       int64_t cols, hipStream_t stream) {
  return nv12_to_rgb(luma, chroma, mean, factor, y, frames, rows, cols, stream);
}

extern "C" hipError_t nv12_to_rgb_f32(const uint8_t* luma, const uint8_t* chroma, const float* mean,
                                      const float* factor, float* y, int64_t frames, int64_t rows,
                                      int64_t cols, hipStream_t stream) {
  return nv12_to_rgb(luma, chroma, mean, factor, y, frames, rows, cols, stream);
}
