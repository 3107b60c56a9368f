// Layer normalisation of pixels that writes them where their window has them, in one pass. A row of
// y is a pixel: its lanes work out which pixel of x belongs there, hold it in registers, and write
// it. As few lanes a pixel as hold it, with three or four packs of 16 bytes each, whichever leaves
// fewer idle: models have 96 * 2^n or 2^n channels. Weights and biases are requested together with
// the pixel, not after its sums.
//
// The variance is that about the mean, and what rounding of the mean leaves over is taken off.
//
// Where pixels are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source
// for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of short pixels

constexpr int threads(int lanes) { return lanes <= kWave ? kBlock : lanes; }

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// One element, or as many as 16 bytes hold. They are moved as `bits`: a compiler may cut a copy of
// the elements into pieces.
template <class T, int kPack> union Pack {
  uint4 bits;
  T v[kPack];
};
template <class T> union Pack<T, 1> {
  T bits;
  T v[1];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

struct Pair {
  float first, second;
};

// Both sums over kLanes lanes, a power of two and at most kWave.
template <int kLanes> __device__ Pair shuffled_sum(Pair pair) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    pair.first += __shfl_xor(pair.first, distance, kWave);
    pair.second += __shfl_xor(pair.second, distance, kWave);
  }
  return pair;
}

// Both sums over the kLanes lanes of a pixel. Each call for a pixel has scratch memory of its own.
template <int kLanes> __device__ Pair pixel_sum(Pair pair, Pair* scratch) {
  pair = shuffled_sum<(kLanes < kWave ? kLanes : kWave)>(pair);
  if constexpr (kLanes > kWave) {
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = pair;
    __syncthreads();
    pair = shuffled_sum<kLanes / kWave>(scratch[threadIdx.x % (kLanes / kWave)]);
  }
  return pair;
}

struct Windows {
  uint32_t rows, cols, size, shift;
};

// Which pixel of x is the one of y with this number: there are at most 2^30.
__device__ int64_t source(uint32_t pixel, const Windows& of) {
  const uint32_t across = pixel % of.size, window = pixel / of.size;
  const uint32_t down = window % of.size, place = window / of.size;
  const uint32_t col = place % of.cols, line = place / of.cols;
  const uint32_t row = line % of.rows, image = line / of.rows;
  const uint32_t height = of.rows * of.size, width = of.cols * of.size;
  const uint32_t y = row * of.size + down + of.shift, x = col * of.size + across + of.shift;
  return ((int64_t)image * height + (y < height ? y : y - height)) * width +
         (x < width ? x : x - width);
}

template <class T, int kPack, int kLanes, int kItems>
__global__ __launch_bounds__(threads(kLanes)) void normalise(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ y, float eps, int64_t pixels, int channels, const Windows of) {
  __shared__ Pair scratch[2][kWave];
  constexpr int kPixels = threads(kLanes) / kLanes;
  const int64_t pixel = (int64_t)blockIdx.x * kPixels + threadIdx.x / kLanes;
  if (pixel >= pixels) return;
  const T* from = x + source((uint32_t)pixel, of) * channels;
  const auto channel = [&](int item) {
    return (item * kLanes + (int)threadIdx.x % kLanes) * kPack;
  };

  Pack<T, kPack> values[kItems], weights[kItems], biases[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (channel(i) < channels) values[i] = read<T, kPack>(from + channel(i));
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (channel(i) >= channels) continue;
    weights[i] = read<T, kPack>(weight + channel(i));
    biases[i] = read<T, kPack>(bias + channel(i));
  }

  const float share = 1.0f / (float)channels;
  Pair sums = {};
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (channel(i) >= channels) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) sums.first += to_float(values[i].v[j]);
  }
  float mean = pixel_sum<kLanes>(sums, scratch[0]).first * share;
  sums = {};
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (channel(i) >= channels) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float apart = to_float(values[i].v[j]) - mean;
      sums.first += apart;
      sums.second += apart * apart;
    }
  }
  sums = pixel_sum<kLanes>(sums, scratch[1]);
  const float left = sums.first * share;
  mean += left;
  const float scale = rsqrtf(fmaxf(sums.second * share - left * left, 0.0f) + eps);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (channel(i) >= channels) continue;
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float normal = (to_float(values[i].v[j]) - mean) * scale;
      result.v[j] = from_float<T>(normal * to_float(weights[i].v[j]) + to_float(biases[i].v[j]));
    }
    write<T, kPack>(y + pixel * channels + channel(i), result);
  }
}

template <class T, int kPack>
void by_length(const T* x, const T* weight, const T* bias, T* y, float eps, int64_t pixels,
               int channels, const Windows& of, hipStream_t stream) {
  const auto start = [&](auto kernel, int lanes) {
    const int64_t pixels_of_block = threads(lanes) / lanes;
    const dim3 grid((unsigned)((pixels + pixels_of_block - 1) / pixels_of_block));
    kernel<<<grid, dim3(threads(lanes)), 0, stream>>>(x, weight, bias, y, eps, pixels, channels,
                                                      of);
  };
  // Packs of one element are small: a lane has more of them.
  constexpr int kFew = kPack > 1 ? 3 : 6, kMany = kPack > 1 ? 4 : 8;
  const int packs = channels / kPack;
  if (packs <= 4 * kFew) return start(normalise<T, kPack, 4, kFew>, 4);
  if (packs <= 4 * kMany) return start(normalise<T, kPack, 4, kMany>, 4);
  if (packs <= 8 * kFew) return start(normalise<T, kPack, 8, kFew>, 8);
  if (packs <= 8 * kMany) return start(normalise<T, kPack, 8, kMany>, 8);
  if (packs <= 16 * kFew) return start(normalise<T, kPack, 16, kFew>, 16);
  if (packs <= 16 * kMany) return start(normalise<T, kPack, 16, kMany>, 16);
  if (packs <= 32 * kFew) return start(normalise<T, kPack, 32, kFew>, 32);
  if (packs <= 32 * kMany) return start(normalise<T, kPack, 32, kMany>, 32);
  if (packs <= 128 * kMany) return start(normalise<T, kPack, 128, kMany>, 128);
  if (packs <= 256 * kMany) return start(normalise<T, kPack, 256, kMany>, 256);
  start(normalise<T, kPack, 512, kMany>, 512);
}

template <class T>
hipError_t swin_partition(const T* x, const T* weight, const T* bias, T* y, float eps,
                          int64_t images, int64_t rows, int64_t cols, int64_t size, int64_t shift,
                          int64_t channels, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const Windows of = {(uint32_t)rows, (uint32_t)cols, (uint32_t)size, (uint32_t)shift};
  const int64_t pixels = images * rows * cols * size * size;
  const uintptr_t places = (uintptr_t)x | (uintptr_t)weight | (uintptr_t)bias | (uintptr_t)y;
  const bool aligned = channels % kPack == 0 && places % 16 == 0;
  const auto start = aligned ? by_length<T, kPack> : by_length<T, 1>;
  start(x, weight, bias, y, eps, pixels, (int)channels, of, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t swin_partition_f16(const __half* x, const __half* weight, const __half* bias,
                                         __half* y, float eps, int64_t images, int64_t rows,
                                         int64_t cols, int64_t size, int64_t shift,
                                         int64_t channels, hipStream_t stream) {
  return swin_partition(x, weight, bias, y, eps, images, rows, cols, size, shift, channels, stream);
}

extern "C" hipError_t swin_partition_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                          const __hip_bfloat16* bias, __hip_bfloat16* y, float eps,
                                          int64_t images, int64_t rows, int64_t cols, int64_t size,
                                          int64_t shift, int64_t channels, hipStream_t stream) {
  return swin_partition(x, weight, bias, y, eps, images, rows, cols, size, shift, channels, stream);
}

extern "C" hipError_t swin_partition_f32(const float* x, const float* weight, const float* bias,
                                         float* y, float eps, int64_t images, int64_t rows,
                                         int64_t cols, int64_t size, int64_t shift,
                                         int64_t channels, hipStream_t stream) {
  return swin_partition(x, weight, bias, y, eps, images, rows, cols, size, shift, channels, stream);
}
