// Residual addition and layer normalisation that read a row from memory once.
//
//  * as few lanes a row as hold it in registers, two or four packs of 16 bytes of each input: 8 or
//    32 lanes, which reduce by shuffles, or a block of up to 1024;
//  * longer rows: 1024 threads, which compute the values again from the cache.
//
// Few lanes with much each: what is on its way from memory then hides its latency.
//
// Where rows are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
//
// Deviations are taken from the rounded mean, and their own mean is subtracted: rows with a large
// offset keep their digits.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of short rows

// Packs of a row in a lane's registers.
template <int kPack, int kLanes>
constexpr int kItems = kPack == 1 ? 8 : kLanes <= kWave ? 4 : 2;

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

template <int kPack> struct Values {
  float v[kPack];
};

// The sum of the values of the kLanes lanes of a row.
template <int kLanes> __device__ float row_sum(float value, float* scratch) {
  constexpr int kShuffled = kLanes < kWave ? kLanes : kWave;
#pragma unroll
  for (int distance = kShuffled / 2; distance > 0; distance /= 2) {
    value += __shfl_xor(value, distance, kWave);
  }
  if constexpr (kLanes > kWave) {
    constexpr int kWaves = kLanes / kWave;
    __syncthreads();  // the last figure has been read
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
    __syncthreads();
    value = scratch[threadIdx.x % kWaves];
#pragma unroll
    for (int distance = kWaves / 2; distance > 0; distance /= 2) {
      value += __shfl_xor(value, distance, kWave);
    }
  }
  return value;
}

// A row of float32 values for kLanes lanes: in registers, or computed again where it is longer.
template <class Source, int kPack, int kLanes, bool kHeld> struct Row {
  const Source& source;
  const int cols, lane;
  Values<kPack> held[kHeld ? kItems<kPack, kLanes> : 1];

  // All packs are requested before the first is looked at.
  __device__ Row(const Source& source, int cols)
      : source(source), cols(cols), lane(threadIdx.x % kLanes) {
    if constexpr (kHeld) {
      typename Source::Raw raw[kItems<kPack, kLanes>];
#pragma unroll
      for (int i = 0; i < kItems<kPack, kLanes>; ++i) {
        if (column(i) < cols) raw[i] = source.load(column(i));
      }
#pragma unroll
      for (int i = 0; i < kItems<kPack, kLanes>; ++i) {
        if (column(i) < cols) held[i] = source.values(column(i), raw[i]);
      }
    }
  }

  __device__ int column(int item) const { return (item * kLanes + lane) * kPack; }

  // Calls f(item, column, values) for each pack of this lane.
  template <class F> __device__ void each(F f) const {
    if constexpr (kHeld) {
#pragma unroll
      for (int i = 0; i < kItems<kPack, kLanes>; ++i) {
        if (column(i) < cols) f(i, column(i), held[i]);
      }
    } else {
      for (int i = 0; column(i) < cols; ++i) {
        f(i, column(i), source.values(column(i), source.load(column(i))));
      }
    }
  }
};

// What all rows share, such as a weight: asked for together with the row, if that is held.
template <class T, int kPack, int kLanes, bool kHeld> struct Shared {
  const T* from;
  Pack<T, kPack> held[kHeld ? kItems<kPack, kLanes> : 1];

  __device__ Shared(const T* from, int cols) : from(from) {
    if constexpr (kHeld) {
#pragma unroll
      for (int i = 0; i < kItems<kPack, kLanes>; ++i) {
        const int col = (i * kLanes + threadIdx.x % kLanes) * kPack;
        if (col < cols) held[i] = read<T, kPack>(from + col);
      }
    }
  }
  __device__ Pack<T, kPack> at(int item, int col) const {
    if constexpr (kHeld) {
      return held[item];
    } else {
      return read<T, kPack>(from + col);
    }
  }
};

template <class T, int kPack> struct Added {
  const T *x, *residual;
  struct Raw {
    Pack<T, kPack> x, residual;
  };

  __device__ Raw load(int col) const {
    return Raw{read<T, kPack>(x + col), read<T, kPack>(residual + col)};
  }
  __device__ Values<kPack> values(int, const Raw& raw) const {
    Values<kPack> values;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      values.v[j] = to_float(raw.x.v[j]) + to_float(raw.residual.v[j]);
    }
    return values;
  }
};

template <class T, int kPack, int kLanes, bool kHeld>
__global__ __launch_bounds__(threads(kLanes)) void add_layernorm_rows(
    const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight,
    const T* __restrict__ bias, T* __restrict__ total, T* __restrict__ y, float eps, int64_t rows,
    int64_t cols) {
  __shared__ float scratch[kWave];
  constexpr int kRows = threads(kLanes) / kLanes;
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  if (row >= rows) return;
  const Added<T, kPack> source{x + row * cols, residual + row * cols};
  const Row<Added<T, kPack>, kPack, kLanes, kHeld> values(source, (int)cols);
  // Short rows leave no registers for more.
  constexpr bool kAhead = kHeld && kLanes > kWave;
  const Shared<T, kPack, kLanes, kAhead> gains(weight, (int)cols), offsets(bias, (int)cols);

  float sum = 0.0f;
  values.each([&](int, int col, const Values<kPack>& pack) {
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      sum += pack.v[j];
      result.v[j] = from_float<T>(pack.v[j]);
    }
    write<T, kPack>(total + row * cols + col, result);
  });
  const float shift = row_sum<kLanes>(sum, scratch) / (float)cols;

  float rest = 0.0f, squares = 0.0f;
  values.each([&](int, int, const Values<kPack>& pack) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float off = pack.v[j] - shift;
      rest += off;
      squares += off * off;
    }
  });
  const float mean = row_sum<kLanes>(rest, scratch) / (float)cols;
  const float square = row_sum<kLanes>(squares, scratch) / (float)cols;
  const float scale = 1.0f / sqrtf(fmaxf(square - mean * mean, 0.0f) + eps);

  T* out = y + row * cols;
  values.each([&](int item, int col, const Values<kPack>& pack) {
    const Pack<T, kPack> gain = gains.at(item, col), offset = offsets.at(item, col);
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float normal = ((pack.v[j] - shift) - mean) * scale;
      result.v[j] = from_float<T>(normal * to_float(gain.v[j]) + to_float(offset.v[j]));
    }
    write<T, kPack>(out + col, result);
  });
}

template <class T, int kPack, int kLanes, bool kHeld>
void launch(const T* x, const T* residual, const T* weight, const T* bias, T* total, T* y,
            float eps, int64_t rows, int64_t cols, hipStream_t stream) {
  constexpr int kThreads = threads(kLanes);
  constexpr int kRows = kThreads / kLanes;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  add_layernorm_rows<T, kPack, kLanes, kHeld>
      <<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, residual, weight, bias, total, y,
                                                              eps, rows, cols);
}

template <class T, int kPack> void by_length(const T* x, const T* residual, const T* weight,
                                             const T* bias, T* total, T* y, float eps, int64_t rows,
                                             int64_t cols, hipStream_t stream) {
  const int64_t packs = cols / kPack;
  if (packs <= 8 * kItems<kPack, 8>) {
    launch<T, kPack, 8, true>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  } else if (packs <= kWave * kItems<kPack, kWave>) {
    launch<T, kPack, kWave, true>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  } else if (packs <= 128 * kItems<kPack, 128>) {
    launch<T, kPack, 128, true>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  } else if (packs <= 256 * kItems<kPack, 256>) {
    launch<T, kPack, 256, true>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  } else if (packs <= 512 * kItems<kPack, 512>) {
    launch<T, kPack, 512, true>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  } else if (packs <= 1024 * kItems<kPack, 1024>) {
    launch<T, kPack, 1024, true>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  } else {
    launch<T, kPack, 1024, false>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  }
}

template <class T> hipError_t add_layernorm(const T* x, const T* residual, const T* weight,
                                            const T* bias, T* total, T* y, float eps, int64_t rows,
                                            int64_t cols, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)residual | (uintptr_t)weight |
                           (uintptr_t)bias | (uintptr_t)total | (uintptr_t)y;
  if (cols % kPack == 0 && places % 16 == 0) {
    by_length<T, kPack>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  } else {
    by_length<T, 1>(x, residual, weight, bias, total, y, eps, rows, cols, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t add_layernorm_f32(const float* x, const float* residual, const float* weight,
                                        const float* bias, float* total, float* y, float eps,
                                        int64_t rows, int64_t cols, hipStream_t stream) {
  return add_layernorm(x, residual, weight, bias, total, y, eps, rows, cols, stream);
}

extern "C" hipError_t add_layernorm_f16(const __half* x, const __half* residual,
                                        const __half* weight, const __half* bias, __half* total,
                                        __half* y, float eps, int64_t rows, int64_t cols,
                                        hipStream_t stream) {
  return add_layernorm(x, residual, weight, bias, total, y, eps, rows, cols, stream);
}

extern "C" hipError_t add_layernorm_bf16(const __hip_bfloat16* x, const __hip_bfloat16* residual,
                                         const __hip_bfloat16* weight, const __hip_bfloat16* bias,
                                         __hip_bfloat16* total, __hip_bfloat16* y, float eps,
                                         int64_t rows, int64_t cols, hipStream_t stream) {
  return add_layernorm(x, residual, weight, bias, total, y, eps, rows, cols, stream);
}
