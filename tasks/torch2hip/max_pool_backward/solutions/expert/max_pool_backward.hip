// The gradient of max pooling, gathered: each element looks at the one, two or four windows that it
// lies in, so that nothing is added up in memory, and everything is written once, as whole packs. A
// thread has a patch of eight columns and eight rows of dx, and the four by four windows that begin
// in it. It requests these and those next to them, below and to the right, before it looks at one.
// What two threads need comes from the cache the second time: a block has whole strips of an image.
//
// Where rows are not aligned, elements are moved one by one, and a thread is one window wide:
// neighbours in memory then belong to neighbouring threads.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kDown = 4;  // windows of a thread, one below the other

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

struct Sizes {
  int height, width, down, across;  // of dx, and of windows
};

// Windows of a row, and the next to the right. Where there is none, its place is no element's.
template <class T, int kWide> struct Line {
  int place[kWide + 1];
  T dy[kWide + 1];
};

// Packs are moved if a thread is more than one window wide.
template <class T, int kWide>
__device__ void request(const T* dy, const int64_t* index, int row, int col, const Sizes& of,
                        Line<T, kWide>& line) {
#pragma unroll
  for (int k = 0; k <= kWide; ++k) line.place[k] = -1, line.dy[k] = from_float<T>(0.0f);
  if (row >= of.down) return;
  const int at = row * of.across + col;
  if constexpr (kWide > 1) {
    const Pack<T, kWide> gradients = read<T, kWide>(dy + at);
    Pack<int64_t, 2> places[kWide / 2];
#pragma unroll
    for (int k = 0; k < kWide / 2; ++k) places[k] = read<int64_t, 2>(index + at + 2 * k);
#pragma unroll
    for (int k = 0; k < kWide; ++k) {
      line.place[k] = (int)places[k / 2].v[k % 2];
      line.dy[k] = gradients.v[k];
    }
  }
#pragma unroll
  for (int k = kWide > 1 ? kWide : 0; k <= kWide; ++k) {
    if (col + k >= of.across) continue;
    line.place[k] = (int)index[at + k];
    line.dy[k] = dy[at + k];
  }
}

// What window k of a line adds to the element at a place.
template <class T, int kWide>
__device__ float part(const Line<T, kWide>& line, int k, int place) {
  return line.place[k] == place ? to_float(line.dy[k]) : 0.0f;
}

template <class T, int kWide>
__device__ void put(T* dx, int row, int col, const float* values, const Sizes& of) {
  if (row >= of.height) return;
  T* to = dx + row * of.width + col;
  if constexpr (kWide > 1) {
    constexpr int kPack = 16 / sizeof(T);
#pragma unroll
    for (int j = 0; j < 2 * kWide; j += kPack) {
      Pack<T, kPack> pack;
#pragma unroll
      for (int k = 0; k < kPack; ++k) pack.v[k] = from_float<T>(values[j + k]);
      write<T, kPack>(to + j, pack);
    }
  } else {
#pragma unroll
    for (int j = 0; j < 2 * kWide; ++j) {
      if (col + j < of.width) to[j] = from_float<T>(values[j]);
    }
  }
}

template <class T, int kWide>
__global__ __launch_bounds__(kThreads) void gather(const T* __restrict__ dy,
                                                   const int64_t* __restrict__ index,
                                                   T* __restrict__ dx, int64_t planes, int strips,
                                                   int groups, const Sizes of) {
  const int64_t thread = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int of_plane = strips * groups;
  const int64_t plane = thread / of_plane;
  if (plane >= planes) return;
  const int own = (int)(thread - plane * of_plane);
  const int first = own / groups * kDown, col = own % groups * kWide;
  dy += plane * of.down * of.across;
  index += plane * of.down * of.across;
  dx += plane * of.height * of.width;

  Line<T, kWide> lines[kDown + 1];
#pragma unroll
  for (int i = 0; i <= kDown; ++i) request(dy, index, first + i, col, of, lines[i]);
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
    // Even rows and columns are the middle of one window, odd ones the border of two.
    const int row = 2 * (first + i), place = row * of.width + 2 * col;
    float upper[2 * kWide], lower[2 * kWide];
#pragma unroll
    for (int k = 0; k < kWide; ++k) {
      const int left = place + 2 * k, right = left + 1;
      upper[2 * k] = part(lines[i], k, left);
      upper[2 * k + 1] = part(lines[i], k, right) + part(lines[i], k + 1, right);
      const int below = left + of.width, across = right + of.width;
      lower[2 * k] = part(lines[i], k, below) + part(lines[i + 1], k, below);
      lower[2 * k + 1] = part(lines[i], k, across) + part(lines[i], k + 1, across) +
                         part(lines[i + 1], k, across) + part(lines[i + 1], k + 1, across);
    }
    put<T, kWide>(dx, row, 2 * col, upper, of);
    put<T, kWide>(dx, row + 1, 2 * col, lower, of);
  }
}

template <class T>
hipError_t max_pool_backward(const T* dy, const int64_t* index, T* dx, int64_t images,
                             int64_t channels, int64_t height, int64_t width, hipStream_t stream) {
  const Sizes of = {(int)height, (int)width, (int)((height - 1) / 2 + 1),
                    (int)((width - 1) / 2 + 1)};
  const uintptr_t places = (uintptr_t)dy | (uintptr_t)index | (uintptr_t)dx;
  const int wide = width % 8 == 0 && places % 16 == 0 ? 4 : 1;
  const int strips = (of.down + kDown - 1) / kDown, groups = (of.across + wide - 1) / wide;
  const int64_t planes = images * channels, threads = planes * strips * groups;
  const auto kernel = wide > 1 ? gather<T, 4> : gather<T, 1>;
  kernel<<<dim3((unsigned)((threads + kThreads - 1) / kThreads)), dim3(kThreads), 0, stream>>>(
      dy, index, dx, planes, strips, groups, of);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t max_pool_backward_f32(const float* dy, const int64_t* index, float* dx,
                                            int64_t images, int64_t channels, int64_t height,
                                            int64_t width, hipStream_t stream) {
  return max_pool_backward(dy, index, dx, images, channels, height, width, stream);
}

extern "C" hipError_t max_pool_backward_f16(const __half* dy, const int64_t* index, __half* dx,
                                            int64_t images, int64_t channels, int64_t height,
                                            int64_t width, hipStream_t stream) {
  return max_pool_backward(dy, index, dx, images, channels, height, width, stream);
}

extern "C" hipError_t max_pool_backward_bf16(const __hip_bfloat16* dy, const int64_t* index,
                                             __hip_bfloat16* dx, int64_t images, int64_t channels,
                                             int64_t height, int64_t width, hipStream_t stream) {
  return max_pool_backward(dy, index, dx, images, channels, height, width, stream);
}
