// A gated residual, and adaptive layer normalisation after it, that reads a row from memory once.
//
// A row stays in the registers of the kLanes threads that share it, 32 to 512, each with a few
// packs of 16 bytes; where rows are not aligned, a pack is one element. Short rows lie side by side
// in a block: most have the same image, and find its settings in the cache. Shuffles stay within 32
// lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of several rows

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

__device__ float wave_sum(float value) {
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    value += __shfl_xor(value, distance, kWave);
  }
  return value;
}

struct Moments {
  float mean, squares;  // the squares of what is left without the mean, added up
};

// The moments of a row of kLanes lanes, each with kItems packs, of which those from `end` on are
// empty. A wave finds its own in two passes, and the block joins them behind one barrier.
template <int kLanes, int kItems, int kPack>
__device__ Moments row_moments(const float (&held)[kItems][kPack], int end, float2* scratch) {
  const int lane = threadIdx.x % kWave, wave = threadIdx.x % kLanes / kWave;
  const auto count_of = [&](int wave) {  // elements of a wave
    int count = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int left = end - (i * kLanes + wave * kWave) * kPack;
      count += left < 0 ? 0 : left > kWave * kPack ? kWave * kPack : left;
    }
    return count;
  };
  const auto inside = [&](int i) { return (i * kLanes + (int)threadIdx.x % kLanes) * kPack < end; };
  float total = 0.0f, squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) total += inside(i) ? held[i][j] : 0.0f;
  }
  total = wave_sum(total);
  const float own = total / fmaxf((float)count_of(wave), 1.0f);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float off = inside(i) ? held[i][j] - own : 0.0f;
      squares += off * off;
    }
  }
  squares = wave_sum(squares);
  if constexpr (kLanes == kWave) return {own, squares};
  constexpr int kWaves = kLanes / kWave;
  if (lane == 0) scratch[threadIdx.x / kWave] = {own, squares};
  __syncthreads();
  const int which = lane < kWaves ? lane : 0;
  const float2 others = scratch[threadIdx.x / kLanes * kWaves + which];
  const float count = lane < kWaves ? (float)count_of(which) : 0.0f;
  const float mean = wave_sum(count * others.x) / fmaxf((float)end, 1.0f);
  const float off = others.x - mean;
  return {mean, wave_sum(lane < kWaves ? others.y + count * off * off : 0.0f)};
}

template <class T, int kPack, int kItems, int kLanes>
__global__ __launch_bounds__(kLanes < kBlock ? kBlock : kLanes) void modulate_rows(
    const T* __restrict__ x, const T* __restrict__ branch, const T* __restrict__ gate,
    const T* __restrict__ shift, const T* __restrict__ scale, T* __restrict__ sum,
    T* __restrict__ y, float eps, int64_t rows, int64_t seq, int cols) {
  __shared__ float2 scratch[kWave];
  constexpr int kRows = kLanes < kBlock ? kBlock / kLanes : 1;
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  const int end = row < rows ? cols : 0;  // threads beyond the last row go along to the barriers
  const int lane = threadIdx.x % kLanes;
  const auto column = [&](int item) { return (item * kLanes + lane) * kPack; };
  const int64_t start = row * cols, settings = (int64_t)((uint32_t)row / (uint32_t)seq) * cols;

  // As many packs as registers allow are requested before the first is looked at.
  constexpr int kAhead = kItems > 16 ? kItems / 4 : kItems * kPack > 16 ? 4 : kItems;
  float held[kItems][kPack];
#pragma unroll
  for (int from = 0; from < kItems; from += kAhead) {
    Pack<T, kPack> first[kAhead], second[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (column(from + i) >= end) continue;
      first[i] = read<T, kPack>(x + start + column(from + i));
      second[i] = read<T, kPack>(branch + start + column(from + i));
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int col = column(from + i);
      if (col >= end) continue;
      const auto gates = read<T, kPack>(gate + settings + col);
      Pack<T, kPack> result;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float v =
            fmaf(to_float(gates.v[j]), to_float(second[i].v[j]), to_float(first[i].v[j]));
        held[from + i][j] = v;
        result.v[j] = from_float<T>(v);
      }
      write<T, kPack>(sum + start + col, result);
    }
  }
  const auto [mean, squares] = row_moments<kLanes>(held, end, scratch);
  const float factor = 1.0f / sqrtf(squares / (float)cols + eps);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) >= end) continue;
    const auto shifts = read<T, kPack>(shift + settings + column(i));
    const auto scales = read<T, kPack>(scale + settings + column(i));
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float normal = (held[i][j] - mean) * factor;
      result.v[j] =
          from_float<T>(fmaf(normal, 1.0f + to_float(scales.v[j]), to_float(shifts.v[j])));
    }
    write<T, kPack>(y + start + column(i), result);
  }
}

template <class T> struct Tensors {
  const T *x, *branch, *gate, *shift, *scale;
  T *sum, *y;
  float eps;
  int64_t rows, seq, cols;
  hipStream_t stream;
};

template <class T, int kPack, int kItems, int kLanes> void launch(const Tensors<T>& of) {
  constexpr int kRows = kLanes < kBlock ? kBlock / kLanes : 1;
  const int64_t blocks = (of.rows + kRows - 1) / kRows;
  modulate_rows<T, kPack, kItems, kLanes>
      <<<dim3((unsigned)blocks), dim3(kRows * kLanes), 0, of.stream>>>(
          of.x, of.branch, of.gate, of.shift, of.scale, of.sum, of.y, of.eps, of.rows, of.seq,
          (int)of.cols);
}

// The longest rows, of 16384 columns, fit into the registers of 512 threads.
template <class T, int kPack, int kItems> void by_length(const Tensors<T>& of) {
  const int64_t lanes = (of.cols / kPack + kItems - 1) / kItems;
  if (lanes <= 32) {
    launch<T, kPack, kItems, 32>(of);
  } else if (lanes <= 64) {
    launch<T, kPack, kItems, 64>(of);
  } else if (lanes <= 128) {
    launch<T, kPack, kItems, 128>(of);
  } else if (lanes <= 256) {
    launch<T, kPack, kItems, 256>(of);
  } else if (lanes <= 512) {
    launch<T, kPack, kItems, 512>(of);
  } else {
    launch<T, kPack, 16384 / (512 * kPack), 512>(of);
  }
}

template <class T>
hipError_t adaln_modulate(const T* x, const T* branch, const T* gate, const T* shift,
                          const T* scale, T* sum, T* y, float eps, int64_t batch, int64_t seq,
                          int64_t cols, hipStream_t stream) {
  const Tensors<T> of = {x,   branch,      gate, shift, scale, sum, y,
                         eps, batch * seq, seq,  cols,  stream};
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)branch | (uintptr_t)gate | (uintptr_t)shift |
                           (uintptr_t)scale | (uintptr_t)sum | (uintptr_t)y;
  if (cols % kPack == 0 && places % 16 == 0) {
    by_length<T, kPack, 4>(of);
  } else if (cols <= 4 * 512) {  // of short rows, more threads request more at once
    by_length<T, 1, 4>(of);
  } else {
    by_length<T, 1, 16>(of);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t adaln_modulate_bf16(const __hip_bfloat16* x, const __hip_bfloat16* branch,
                                          const __hip_bfloat16* gate, const __hip_bfloat16* shift,
                                          const __hip_bfloat16* scale, __hip_bfloat16* sum,
                                          __hip_bfloat16* y, float eps, int64_t batch, int64_t seq,
                                          int64_t cols, hipStream_t stream) {
  return adaln_modulate(x, branch, gate, shift, scale, sum, y, eps, batch, seq, cols, stream);
}

extern "C" hipError_t adaln_modulate_f16(const __half* x, const __half* branch, const __half* gate,
                                         const __half* shift, const __half* scale, __half* sum,
                                         __half* y, float eps, int64_t batch, int64_t seq,
                                         int64_t cols, hipStream_t stream) {
  return adaln_modulate(x, branch, gate, shift, scale, sum, y, eps, batch, seq, cols, stream);
}

extern "C" hipError_t adaln_modulate_f32(const float* x, const float* branch, const float* gate,
                                         const float* shift, const float* scale, float* sum,
                                         float* y, float eps, int64_t batch, int64_t seq,
                                         int64_t cols, hipStream_t stream) {
  return adaln_modulate(x, branch, gate, shift, scale, sum, y, eps, batch, seq, cols, stream);
}
