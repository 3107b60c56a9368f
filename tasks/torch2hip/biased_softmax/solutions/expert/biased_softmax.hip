// The softmax of attention's scores with a bias and a mask, that reads a row from memory once.
//
// A row stays in the registers of 16 or 32 threads, or of 128 or 256 where it is long, in packs of
// 16 bytes, or of one element where rows are not aligned. The same threads have the same row of
// several sequences, with the same bias, which they read once for these; all is requested before
// the first is used. Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of several rows

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

__device__ float power_of_2(float v) {
#ifdef __HIP_PLATFORM_NVIDIA__
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(v));  // results too small for float32's format are 0
  return v;
#else
  return exp2f(v);
#endif
}

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// The values of the kLanes lanes of a row, joined by `join`. All threads of the block call this.
template <int kLanes, class Join> __device__ float joined(float value, float* scratch, Join join) {
#pragma unroll
  for (int distance = (kLanes < kWave ? kLanes : kWave) / 2; distance > 0; distance /= 2) {
    value = join(value, __shfl_xor(value, distance, kWave));
  }
  if constexpr (kLanes > kWave) {
    __syncthreads();  // the last figure has been read
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int w = 1; w < kLanes / kWave; ++w) value = join(value, scratch[w]);
  }
  return value;
}

template <class T, int kPack, int kItems, int kLanes, int kBatch>
__global__ __launch_bounds__(threads(kLanes)) void softmax_rows(
    const T* __restrict__ x, const T* __restrict__ bias, const uint8_t* __restrict__ mask,
    T* __restrict__ y, float scale, int64_t batch, int64_t planes, int64_t all, int cols) {
  __shared__ float scratch[kBlock / kWave];
  constexpr int kRows = threads(kLanes) / kLanes;
  constexpr float kLog2e = 1.4426950408889634f;
  // A row of all heads' rows, and the first of the sequences; `planes` rows are before the next.
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  const int64_t plane = (uint32_t)row % (uint32_t)planes;  // there are at most 2^28 rows
  const int64_t sequence = (int64_t)((uint32_t)row / (uint32_t)planes) * kBatch;
  const int end = row < all ? cols : 0;  // threads beyond the last row go along to the barriers
  const int lane = threadIdx.x % kLanes;
  const auto column = [&](int item) { return (item * kLanes + lane) * kPack; };
  const int64_t first = (sequence * planes + plane) * cols, step = planes * cols;
  const int left = (int)(batch - sequence);
  const auto inside = [&](int item, int b) { return column(item) < end && b < left; };

  Pack<T, kPack> biases[kItems], held[kBatch][kItems];
  Pack<uint8_t, kPack> counts[kBatch][kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) < end) biases[i] = read<T, kPack>(bias + plane * cols + column(i));
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      if (!inside(i, b)) continue;
      held[b][i] = read<T, kPack>(x + first + b * step + column(i));
      counts[b][i] = read<uint8_t, kPack>(mask + (sequence + b) * cols + column(i));
    }
  }
  // Parts of several packs take the bias as an exponent of 2: one product less for each element.
  // Those of one pack lose more by the registers that this takes.
  constexpr bool kFold = kItems * kPack > 8 && kPack > 1;
  float added[kItems][kPack];
  if constexpr (kFold) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (column(i) >= end) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) added[i][j] = to_float(biases[i].v[j]) * kLog2e;
    }
    scale *= kLog2e;
  }
#pragma unroll
  for (int b = 0; b < kBatch; ++b) {
    float v[kItems][kPack], most = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (!inside(i, b)) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float more = kFold ? added[i][j] : to_float(biases[i].v[j]);
        const float z = fmaf(scale, to_float(held[b][i].v[j]), more);
        v[i][j] = counts[b][i].v[j] ? z : -INFINITY;
        most = fmaxf(most, v[i][j]);
      }
    }
    most = joined<kLanes>(most, scratch, Larger());
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (!inside(i, b)) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        v[i][j] = power_of_2(kFold ? v[i][j] - most : (v[i][j] - most) * kLog2e);
        sum += v[i][j];
      }
    }
    const float factor = 1.0f / joined<kLanes>(sum, scratch, Sum());
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (!inside(i, b)) continue;
      Pack<T, kPack> result;
#pragma unroll
      for (int j = 0; j < kPack; ++j) result.v[j] = from_float<T>(v[i][j] * factor);
      write<T, kPack>(y + first + b * step + column(i), result);
    }
  }
}

template <class T> struct Tensors {
  const T *x, *bias;
  const uint8_t* mask;
  T* y;
  float scale;
  int64_t batch, planes, cols;
  hipStream_t stream;
};

template <class T, int kPack, int kItems, int kLanes, int kBatch>
void launch(const Tensors<T>& of) {
  constexpr int kRows = threads(kLanes) / kLanes;
  const int64_t all = (of.batch + kBatch - 1) / kBatch * of.planes;
  const dim3 grid((unsigned)((all + kRows - 1) / kRows));
  softmax_rows<T, kPack, kItems, kLanes, kBatch><<<grid, dim3(threads(kLanes)), 0, of.stream>>>(
      of.x, of.bias, of.mask, of.y, of.scale, of.batch, of.planes, all, (int)of.cols);
}

// Rows have at most 4096 columns. kUnit packs have 8 elements. The longer a thread's part of a row,
// the fewer sequences have room in its registers.
template <class T, int kPack> void by_length(const Tensors<T>& of) {
  constexpr int kUnit = 8 / kPack;
  constexpr bool kWide = kPack > 1;
  constexpr int kBatch = kPack == 8 ? 4 : 2;
  if (of.cols <= 8 * 16) {
    launch<T, kPack, kUnit, 16, kBatch>(of);
  } else if (of.cols <= 8 * kWave) {
    launch<T, kPack, kUnit, kWave, kBatch>(of);
  } else if (kWide && of.cols <= 16 * kWave) {
    launch<T, kPack, kWide ? 2 * kUnit : 1, kWave, kBatch>(of);
  } else if (of.cols <= 4 * 128 && !kWide) {  // a lane of a wave would wait for 16 elements
    launch<T, kPack, kWide ? 1 : 4, 128, 1>(of);
  } else if (kWide && of.cols <= 32 * kWave) {
    launch<T, kPack, kWide ? 4 * kUnit : 1, kWave, 1>(of);
  } else if (of.cols <= 8 * kBlock) {
    launch<T, kPack, kUnit, kBlock, kBatch>(of);
  } else {
    launch<T, kPack, 2 * kUnit, kBlock, 1>(of);
  }
}

template <class T>
hipError_t biased_softmax(const T* x, const T* bias, const uint8_t* mask, T* y, float scale,
                          int64_t batch, int64_t heads, int64_t rows, int64_t cols,
                          hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const Tensors<T> of = {x, bias, mask, y, scale, batch, heads * rows, cols, stream};
  const uintptr_t places = (uintptr_t)x | (uintptr_t)bias | (uintptr_t)mask | (uintptr_t)y;
  if (cols % kPack == 0 && places % 16 == 0) {
    by_length<T, kPack>(of);
  } else {
    by_length<T, 1>(of);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t biased_softmax_f32(const float* x, const float* bias, const uint8_t* mask,
                                         float* y, float scale, int64_t batch, int64_t heads,
                                         int64_t rows, int64_t cols, hipStream_t stream) {
  return biased_softmax(x, bias, mask, y, scale, batch, heads, rows, cols, stream);
}

extern "C" hipError_t biased_softmax_f16(const __half* x, const __half* bias, const uint8_t* mask,
                                         __half* y, float scale, int64_t batch, int64_t heads,
                                         int64_t rows, int64_t cols, hipStream_t stream) {
  return biased_softmax(x, bias, mask, y, scale, batch, heads, rows, cols, stream);
}

extern "C" hipError_t biased_softmax_bf16(const __hip_bfloat16* x, const __hip_bfloat16* bias,
                                          const uint8_t* mask, __hip_bfloat16* y, float scale,
                                          int64_t batch, int64_t heads, int64_t rows, int64_t cols,
                                          hipStream_t stream) {
  return biased_softmax(x, bias, mask, y, scale, batch, heads, rows, cols, stream);
}
