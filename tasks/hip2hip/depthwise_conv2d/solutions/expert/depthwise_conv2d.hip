// A depthwise convolution, channels last. Where pixels are aligned, a block brings a tile of 32
// channels with its border to shared memory, zeros included, and a thread computes kTall x kAcross
// outputs of a pair of channels from there: it reads and converts each row of its inputs once, and
// adds it to all of its rows of outputs. Elsewhere, and where there are too few tiles for all
// processors, threads read from memory, a pair of channels or one. Filters of 3, 5 and 7 are
// unrolled; others go output by output.
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

constexpr int kSpan = 32;            // channels of a tile
constexpr int kPairs = kSpan / 2;    // threads along them
constexpr int kTall = 2;         // rows of a thread
constexpr int kMostThreads = 256;    // of a block with a tile
constexpr int kResident = 1;  // blocks of a processor at least
// Bytes that a row of a tile is longer: two groups of a warp, kTall rows apart, meet other banks.
constexpr int kSkew = 64 / kTall;
constexpr int kTileBytes = 40 << 10;  // at most
constexpr int64_t kFewTiles = 132;

struct Tiling {
  int height, width, channels;
  unsigned spans, tiles_across, tiles_down;  // of an image
  int across, down;                          // threads of a block
};

// Copies 16 bytes to shared memory, or zeros; they are there after await(). On NVIDIA no register
// waits for them, and so all of a tile is on its way at once.
__device__ void bring(uint4* to, const void* from, bool there) {
#ifdef __HIP_PLATFORM_NVIDIA__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   (uint32_t)__cvta_generic_to_shared(to)),
               "l"(from), "r"(there ? 16 : 0)
               : "memory");
#else
  *to = there ? *static_cast<const uint4*>(from) : uint4{};
#endif
}

__device__ void await() {
#ifdef __HIP_PLATFORM_NVIDIA__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

template <class T, int kSize>
__global__ __launch_bounds__(kMostThreads, kResident) void convolve_tile(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ y, Tiling tiling) {
  constexpr int kHalf = kSize / 2, kWide = kAcross + kSize - 1;
  constexpr int kLoad = 16 / sizeof(T), kLoads = kSpan / kLoad;
  __shared__ float2 taps_of[kSize * kSize][kPairs];
  extern __shared__ uint4 tile[];  // of each pixel kSpan channels
  unsigned index = blockIdx.x;
  const int channel = (int)(index % tiling.spans) * kSpan;
  index /= tiling.spans;
  const int left = (int)(index % tiling.tiles_across) * tiling.across * kAcross;
  index /= tiling.tiles_across;
  const int top = (int)(index % tiling.tiles_down) * tiling.down * kTall;
  const int64_t image = (int64_t)(index / tiling.tiles_down) * tiling.height * tiling.width;
  const int pair = threadIdx.x % kPairs, group = threadIdx.x / kPairs;
  const int cols = tiling.across * kAcross + kSize - 1, rows = tiling.down * kTall + kSize - 1;

  // Each group of kPairs threads brings rows, a thread the same part of every kOnce-th pixel.
  constexpr int kOnce = kPairs / kLoads;
  const int part = pair % kLoads * kLoad, begin = pair / kLoads;
  const bool within = channel + part < tiling.channels;
  const int pitch = cols * kSpan + kSkew / (int)sizeof(T);
  const T* const from = x + image * tiling.channels + (within ? channel + part : 0);
  for (int down = group; down < rows; down += tiling.across * tiling.down) {
    const int row = top + down - kHalf;
    const bool inside = within && (unsigned)row < (unsigned)tiling.height;
    const T* const line = from + (inside ? row : 0) * tiling.width * tiling.channels;
    uint4* to = tile + down * pitch / kLoad + pair;
#pragma unroll 4
    for (int at = begin; at < cols; at += kOnce, to += kPairs) {
      const int col = left + at - kHalf;
      const bool there = inside && (unsigned)col < (unsigned)tiling.width;
      bring(to, line + (there ? col : 0) * tiling.channels, there);
    }
  }
  const bool used = channel + 2 * pair < tiling.channels;
  for (int tap = group; tap < kSize * kSize; tap += tiling.across * tiling.down) {
    Values<2> pack{};
    if (used) pack = load<T, 2>(weight + tap * tiling.channels + channel + 2 * pair);
    taps_of[tap][pair] = float2{pack.v[0], pack.v[1]};
  }
  Values<2> sums[kTall][kAcross];
  Values<2> start{};
  if (used) start = load<T, 2>(bias + channel + 2 * pair);
#pragma unroll
  for (int d = 0; d < kTall; ++d) {
#pragma unroll
    for (int c = 0; c < kAcross; ++c) sums[d][c] = start;
  }
  await();
  __syncthreads();

  const int first_row = group / tiling.across * kTall, first_col = group % tiling.across * kAcross;
  const T* line =
      reinterpret_cast<const T*>(tile) + first_row * pitch + first_col * kSpan + 2 * pair;
  // Row `step` of the inputs meets row step - d of the filter in row d of the outputs.
  Values<2> taps[kTall][kSize] = {};
#pragma unroll
  for (int step = 0; step < kSize + kTall - 1; ++step) {
#pragma unroll
    for (int d = kTall - 1; d > 0; --d) {
#pragma unroll
      for (int t = 0; t < kSize; ++t) taps[d][t] = taps[d - 1][t];
    }
    if (step < kSize) {
#pragma unroll
      for (int t = 0; t < kSize; ++t) {
        const float2 tap = taps_of[step * kSize + t][pair];
        taps[0][t] = Values<2>{{tap.x, tap.y}};
      }
    }
    Values<2> inputs[kWide];
#pragma unroll
    for (int i = 0; i < kWide; ++i) inputs[i] = load<T, 2>(line + i * kSpan);
    line += pitch;
#pragma unroll
    for (int d = 0; d < kTall; ++d) {
      if (step - d < 0 || step - d >= kSize) continue;
#pragma unroll
      for (int t = 0; t < kSize; ++t) {
#pragma unroll
        for (int c = 0; c < kAcross; ++c) add_product(sums[d][c], inputs[c + t], taps[d][t]);
      }
    }
  }

  if (!used) return;
  T* const to = y + image * tiling.channels + channel + 2 * pair;
#pragma unroll
  for (int d = 0; d < kTall; ++d) {
    const int row = top + first_row + d;
    if (row >= tiling.height) break;
#pragma unroll
    for (int c = 0; c < kAcross; ++c) {
      const int col = left + first_col + c;
      if (col >= tiling.width) break;
      store<T, 2>(to + (row * tiling.width + col) * tiling.channels, sums[d][c]);
    }
  }
}

// Starts blocks with tiles, if there are enough of them for all processors.
template <class T, int kSize>
bool by_tile(const T* x, const T* weight, const T* bias, T* y, int64_t images, const Shape& shape,
             hipStream_t stream) {
  Tiling best{};
  int64_t blocks = 0, bytes = 0;
  double least = 1e30;
  const auto parts = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  for (int across = 1; across <= 8; ++across) {
    for (int down = 1; down <= 16; ++down) {
      const int64_t cols = across * kAcross, rows = down * kTall;
      const int64_t of_tile = (cols + kSize - 1) * (rows + kSize - 1);
      const int64_t size = of_tile * kSpan * sizeof(T) + (rows + kSize - 1) * kSkew;
      if (across * down < 4 || kPairs * across * down > kMostThreads || size > kTileBytes) continue;
      const int64_t tiles = parts(shape.width, cols) * parts(shape.height, rows);
      // Instructions of a tile, about: what is brought, and what is computed.
      const double cost = (double)tiles * (of_tile * (sizeof(T) * kSpan / 16) * 12.0 +
                                           cols * rows * kPairs * (2.4 * kSize * kSize + 12.0));
      if (cost >= least) continue;
      least = cost;
      bytes = size;
      best = Tiling{shape.height, shape.width, shape.channels,
                    (unsigned)parts(shape.channels, kSpan), (unsigned)parts(shape.width, cols),
                    (unsigned)parts(shape.height, rows), across, down};
      blocks = images * tiles * best.spans;
    }
  }
  if (blocks < kFewTiles) return false;
  convolve_tile<T, kSize>
      <<<dim3((unsigned)blocks), dim3((unsigned)(kPairs * best.across * best.down)), (size_t)bytes,
         stream>>>(x, weight, bias, y, best);
  return true;
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
  if ((places | channels * sizeof(T)) % 16 == 0) {
    const bool started = size == 3   ? by_tile<T, 3>(x, weight, bias, y, images, shape, stream)
                         : size == 5 ? by_tile<T, 5>(x, weight, bias, y, images, shape, stream)
                         : size == 7 ? by_tile<T, 7>(x, weight, bias, y, images, shape, stream)
                                     : false;
    if (started) return hipGetLastError();
  }
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
