// A depthwise convolution, channels last: a thread computes kDown x kAcross outputs of a pair of
// channels, or of one where pairs are not aligned. It reads and converts each row of its inputs
// once, and adds it to all of its rows of outputs. Filters of 3, 5 and 7 are unrolled; others go
// output by output.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 128;
constexpr int kDown = 2, kAcross = 7;  // images of 14, 28 and 56 are a multiple

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// One or two elements, moved as one word.
template <int kBytes> struct WordOf;
template <> struct WordOf<2> {
  using Type = uint16_t;
};
template <> struct WordOf<4> {
  using Type = uint32_t;
};
template <> struct WordOf<8> {
  using Type = uint2;
};
template <class T, int kPack> union Pack {
  typename WordOf<kPack * sizeof(T)>::Type bits;
  T v[kPack];
};

template <int kPack> struct Values {
  float v[kPack];
};

template <class T, int kPack> __device__ Values<kPack> load(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  Values<kPack> values;
#pragma unroll
  for (int e = 0; e < kPack; ++e) values.v[e] = to_float(pack.v[e]);
  return values;
}

template <class T, int kPack> __device__ void store(T* to, const Values<kPack>& values) {
  Pack<T, kPack> pack;
#pragma unroll
  for (int e = 0; e < kPack; ++e) pack.v[e] = from_float<T>(values.v[e]);
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

template <int kPack>
__device__ void add_product(Values<kPack>& sum, const Values<kPack>& a, const Values<kPack>& b) {
#pragma unroll
  for (int e = 0; e < kPack; ++e) sum.v[e] = fmaf(a.v[e], b.v[e], sum.v[e]);
}

struct Shape {
  int64_t threads;  // that have outputs
  int height, width, channels, size;
  unsigned packs, tiles_down, tiles_across;
};

// The outputs of a thread: those from `row` and `col` on, of the channels from `channel` on.
struct Place {
  int64_t image;
  int row, col, channel;

  // A division of 64 bits takes many instructions.
  __device__ Place(const Shape& shape, int64_t index, int down, int across, int pack) {
    if (shape.threads >> 32) {
      find<uint64_t>(shape, index, down, across, pack);
    } else {
      find<uint32_t>(shape, (uint32_t)index, down, across, pack);
    }
  }

  template <class Index>
  __device__ void find(const Shape& shape, Index index, int down, int across, int pack) {
    channel = (int)(index % shape.packs) * pack;
    index /= shape.packs;
    col = (int)(index % shape.tiles_across) * across;
    index /= shape.tiles_across;
    row = (int)(index % shape.tiles_down) * down;
    image = index / shape.tiles_down;
  }
};

template <class T, int kPack, int kSize>
__global__ __launch_bounds__(kThreads) void convolve(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ y, Shape shape) {
  constexpr int kHalf = kSize / 2, kWide = kAcross + kSize - 1;
  const int64_t index = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (index >= shape.threads) return;
  const Place place(shape, index, kDown, kAcross, kPack);
  const int64_t image = place.image * shape.height * shape.width * shape.channels + place.channel;
  const T* const filter = weight + place.channel;

  Values<kPack> sums[kDown][kAcross];
  const Values<kPack> start = load<T, kPack>(bias + place.channel);
#pragma unroll
  for (int d = 0; d < kDown; ++d) {
#pragma unroll
    for (int c = 0; c < kAcross; ++c) sums[d][c] = start;
  }
  // Row `step` of the inputs meets row step - d of the filter in row d of the outputs.
  Values<kPack> taps[kDown][kSize] = {};
#pragma unroll
  for (int step = 0; step < kSize + kDown - 1; ++step) {
#pragma unroll
    for (int d = kDown - 1; d > 0; --d) {
#pragma unroll
      for (int t = 0; t < kSize; ++t) taps[d][t] = taps[d - 1][t];
    }
    if (step < kSize) {
#pragma unroll
      for (int t = 0; t < kSize; ++t) {
        taps[0][t] = load<T, kPack>(filter + (step * kSize + t) * shape.channels);
      }
    }
    const int row = place.row + step - kHalf;
    if (row < 0 || row >= shape.height) continue;
    const T* const line = x + image + (int64_t)row * shape.width * shape.channels;
    Values<kPack> inputs[kWide];
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      const int col = place.col + i - kHalf;
      inputs[i] = Values<kPack>{};
      if (col >= 0 && col < shape.width) inputs[i] = load<T, kPack>(line + col * shape.channels);
    }
#pragma unroll
    for (int d = 0; d < kDown; ++d) {
      if (step - d < 0 || step - d >= kSize) continue;
#pragma unroll
      for (int t = 0; t < kSize; ++t) {
#pragma unroll
        for (int c = 0; c < kAcross; ++c) add_product(sums[d][c], inputs[c + t], taps[d][t]);
      }
    }
  }

#pragma unroll
  for (int d = 0; d < kDown; ++d) {
    const int row = place.row + d;
    if (row >= shape.height) break;
    T* const line = y + image + (int64_t)row * shape.width * shape.channels;
#pragma unroll
    for (int c = 0; c < kAcross; ++c) {
      const int col = place.col + c;
      if (col < shape.width) store<T, kPack>(line + col * shape.channels, sums[d][c]);
    }
  }
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void convolve_any(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ y, Shape shape) {
  const int64_t index = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (index >= shape.threads) return;
  const Place place(shape, index, 1, 1, kPack);
  const int64_t image = place.image * shape.height * shape.width * shape.channels + place.channel;
  const int up = place.row - shape.size / 2, left = place.col - shape.size / 2;
  const int from_row = up < 0 ? 0 : up, from_col = left < 0 ? 0 : left;
  const int to_row = up + shape.size < shape.height ? up + shape.size : shape.height;
  const int to_col = left + shape.size < shape.width ? left + shape.size : shape.width;
  Values<kPack> sum = load<T, kPack>(bias + place.channel);
  for (int row = from_row; row < to_row; ++row) {
    const T* const line = x + image + (int64_t)row * shape.width * shape.channels;
    const T* const taps = weight + (row - up) * shape.size * shape.channels + place.channel;
#pragma unroll 4
    for (int col = from_col; col < to_col; ++col) {
      add_product(sum, load<T, kPack>(line + col * shape.channels),
                  load<T, kPack>(taps + (col - left) * shape.channels));
    }
  }
  const int64_t at = ((int64_t)place.row * shape.width + place.col) * shape.channels;
  store<T, kPack>(y + image + at, sum);
}

template <class T, int kPack>
void by_size(const T* x, const T* weight, const T* bias, T* y, int64_t images, Shape shape,
             hipStream_t stream) {
  const auto start = [&](auto kernel, int down, int across) {
    shape.packs = shape.channels / kPack;
    shape.tiles_down = (unsigned)(shape.height + down - 1) / down;
    shape.tiles_across = (unsigned)(shape.width + across - 1) / across;
    shape.threads = images * (shape.tiles_down * shape.tiles_across) * shape.packs;
    const int64_t blocks = (shape.threads + kThreads - 1) / kThreads;
    kernel<<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, weight, bias, y, shape);
  };
  if (shape.size == 3) return start(convolve<T, kPack, 3>, kDown, kAcross);
  if (shape.size == 5) return start(convolve<T, kPack, 5>, kDown, kAcross);
  if (shape.size == 7) return start(convolve<T, kPack, 7>, kDown, kAcross);
  start(convolve_any<T, kPack>, 1, 1);
}

template <class T>
hipError_t depthwise_conv2d(const T* x, const T* weight, const T* bias, T* y, int64_t images,
                            int64_t height, int64_t width, int64_t channels, int64_t size,
                            hipStream_t stream) {
  const uintptr_t places = (uintptr_t)x | (uintptr_t)weight | (uintptr_t)bias | (uintptr_t)y;
  const bool pairs = channels % 2 == 0 && places % (2 * sizeof(T)) == 0;
  const Shape shape{0, (int)height, (int)width, (int)channels, (int)size, 0, 0, 0};
  const auto start = pairs ? by_size<T, 2> : by_size<T, 1>;
  start(x, weight, bias, y, images, shape, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t depthwise_conv2d_f16(const __half* x, const __half* weight,
                                           const __half* bias, __half* y, int64_t images,
                                           int64_t height, int64_t width, int64_t channels,
                                           int64_t size, hipStream_t stream) {
  return depthwise_conv2d(x, weight, bias, y, images, height, width, channels, size, stream);
}

extern "C" hipError_t depthwise_conv2d_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                            const __hip_bfloat16* bias, __hip_bfloat16* y,
                                            int64_t images, int64_t height, int64_t width,
                                            int64_t channels, int64_t size, hipStream_t stream) {
  return depthwise_conv2d(x, weight, bias, y, images, height, width, channels, size, stream);
}

extern "C" hipError_t depthwise_conv2d_f32(const float* x, const float* weight, const float* bias,
                                           float* y, int64_t images, int64_t height, int64_t width,
                                           int64_t channels, int64_t size, hipStream_t stream) {
  return depthwise_conv2d(x, weight, bias, y, images, height, width, channels, size, stream);
}
