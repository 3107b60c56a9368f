// Quantisation of rows to int8 that reads a row from memory once.
//
//  * as few lanes a row as hold it in registers, four packs of 16 bytes each: 8 or 32 lanes, which
//    reduce by shuffles, or a block of up to 1024;
//  * longer rows: 1024 threads, which compute the values again from the cache.
//
// Few lanes with much each: what is on its way from memory then hides its latency.
//
// Packs lie on 16-byte boundaries whatever the alignment of the row; those at its ends go element
// by element. Only where x or q itself is not aligned, a pack is one element. Shuffles stay within
// 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;    // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;  // threads of a block of short rows

// Packs of a row in a lane's registers.
template <int kPack> constexpr int kItems = kPack == 1 ? 8 : 4;

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

// kPack floats, which lie on a 16-byte boundary where kPack is not 1.
template <int kPack> __device__ Values<kPack> floats(const float* from) {
  Values<kPack> values;
  if constexpr (kPack == 1) {
    values.v[0] = from[0];
  } else {
#pragma unroll
    for (int j = 0; j < kPack; j += 4) {
      const Pack<float, 4> pack = read<float, 4>(from + j);
#pragma unroll
      for (int k = 0; k < 4; ++k) values.v[j + k] = pack.v[k];
    }
  }
  return values;
}

// As many bytes as a pack has elements, moved as one word.
template <int kPack> union Bytes;
template <> union Bytes<1> {
  uint8_t bits;
  uint8_t v[1];
};
template <> union Bytes<4> {
  uint32_t bits;
  uint8_t v[4];
};
template <> union Bytes<8> {
  uint2 bits;
  uint8_t v[8];
};

// The largest of the values, none of them negative, of the kLanes lanes of a row.
template <int kLanes> __device__ float row_max(float value, float* scratch) {
  constexpr int kShuffled = kLanes < kWave ? kLanes : kWave;
#pragma unroll
  for (int distance = kShuffled / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor(value, distance, kWave));
  }
  if constexpr (kLanes > kWave) {
    constexpr int kWaves = kLanes / kWave;
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
    __syncthreads();
    value = scratch[threadIdx.x % kWaves];
#pragma unroll
    for (int distance = kWaves / 2; distance > 0; distance /= 2) {
      value = fmaxf(value, __shfl_xor(value, distance, kWave));
    }
  }
  return value;
}

// A row of float32 values for kLanes lanes: in registers, or computed again where it is longer.
template <class Source, int kPack, int kLanes, bool kHeld> struct Row {
  const Source& source;
  const int cols, lane, lead;  // the first pack begins `lead` elements before the row
  Values<kPack> held[kHeld ? kItems<kPack> : 1];

  // All packs are requested before the first is looked at.
  __device__ Row(const Source& source, int cols, int lead)
      : source(source), cols(cols), lane(threadIdx.x % kLanes), lead(lead) {
    if constexpr (kHeld) {
      typename Source::Raw raw[kItems<kPack>];
#pragma unroll
      for (int i = 0; i < kItems<kPack>; ++i) {
        if (column(i) < cols) raw[i] = source.load(column(i));
      }
#pragma unroll
      for (int i = 0; i < kItems<kPack>; ++i) {
        if (column(i) < cols) held[i] = source.values(column(i), raw[i]);
      }
    }
  }

  __device__ int column(int item) const { return (item * kLanes + lane) * kPack - lead; }

  // Calls f(column, values) for each pack of this lane.
  template <class F> __device__ void each(F f) const {
    if constexpr (kHeld) {
#pragma unroll
      for (int i = 0; i < kItems<kPack>; ++i) {
        if (column(i) < cols) f(column(i), held[i]);
      }
    } else {
      for (int i = 0; column(i) < cols; ++i) {
        f(column(i), source.values(column(i), source.load(column(i))));
      }
    }
  }
};

template <class T, int kPack, bool kEdges> struct Smoothed {
  const T* x;
  const float* smooth;
  int cols;
  using Raw = Pack<T, kPack>;

  __device__ bool whole(int col) const { return !kEdges || (col >= 0 && col + kPack <= cols); }
  __device__ bool inside(int col) const { return (unsigned)col < (unsigned)cols; }
  __device__ Raw load(int col) const {
    if (whole(col)) return read<T, kPack>(x + col);
    Raw raw;
#pragma unroll
    for (int j = 0; j < kPack; ++j) raw.v[j] = inside(col + j) ? x[col + j] : from_float<T>(0.0f);
    return raw;
  }
  __device__ Values<kPack> values(int col, const Raw& raw) const {
    Values<kPack> values;
    if constexpr (kEdges) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) values.v[j] = inside(col + j) ? smooth[col + j] : 1.0f;
    } else {
      values = floats<kPack>(smooth + col);
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) values.v[j] = __fdividef(to_float(raw.v[j]), values.v[j]);
    return values;
  }
};

template <class T, int kPack, int kLanes, bool kHeld, bool kEdges>
__global__ __launch_bounds__(threads(kLanes)) void quantise_rows(
    const T* __restrict__ x, const float* __restrict__ smooth, int8_t* __restrict__ q,
    float* __restrict__ scale, int64_t rows, int64_t cols) {
  __shared__ float scratch[kWave];
  constexpr int kRows = threads(kLanes) / kLanes;
  const int64_t row = (int64_t)blockIdx.x * kRows + threadIdx.x / kLanes;
  if (row >= rows) return;
  using Source = Smoothed<T, kPack, kEdges>;
  const Source source{x + row * cols, smooth, (int)cols};
  const int lead = kEdges ? (int)(row * cols % kPack) : 0;
  const Row<Source, kPack, kLanes, kHeld> values(source, (int)cols, lead);

  float largest = 0.0f;
  values.each([&](int, const Values<kPack>& pack) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) largest = fmaxf(largest, fabsf(pack.v[j]));
  });
  const float step = row_max<kLanes>(largest, scratch) / 127.0f;
  if (threadIdx.x % kLanes == 0) scale[row] = step;

  // A step has no finite inverse below the normal numbers: those values are scaled up first.
  const float scaled = step < 1e-37f ? 1e12f : 1.0f;
  const float per_step = step > 0.0f ? 1.0f / (step * scaled) : 0.0f;
  int8_t* out = q + row * cols;
  values.each([&](int col, const Values<kPack>& pack) {
    Bytes<kPack> bytes;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      // Added to this number, a small one is rounded to an integer, in the last bits of the sum.
      const float steps = fminf(fmaxf(pack.v[j] * scaled * per_step, -127.0f), 127.0f);
      bytes.v[j] = (uint8_t)__float_as_uint(steps + 12582912.0f);
    }
    if (source.whole(col)) {
      reinterpret_cast<Bytes<kPack>*>(out + col)->bits = bytes.bits;
    } else {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (source.inside(col + j)) out[col + j] = (int8_t)bytes.v[j];
      }
    }
  });
}

template <class T, int kPack, int kLanes, bool kHeld, bool kEdges>
void launch(const T* x, const float* smooth, int8_t* q, float* scale, int64_t rows, int64_t cols,
            hipStream_t stream) {
  constexpr int kThreads = threads(kLanes);
  constexpr int kRows = kThreads / kLanes;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  quantise_rows<T, kPack, kLanes, kHeld, kEdges>
      <<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(x, smooth, q, scale, rows, cols);
}

#ifdef __HIP_PLATFORM_NVIDIA__
#define STAGES
// 16 bytes to shared memory, and what belongs to one stage.
__device__ void copy(uint4* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   (unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLater> __device__ void settle() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
}
#endif

#ifdef STAGES
// Blocks that stay: the inverse factors of its columns lie in a thread's registers, and the next
// rows are on their way to shared memory, where each thread reads only what it has written.
template <class T, int kThreads, int kTurns, int kStages, int kBlocks>
__global__ __launch_bounds__(kThreads, kBlocks) void quantise_long_rows(
    const T* __restrict__ x, const float* __restrict__ smooth, int8_t* __restrict__ q,
    float* __restrict__ scale, int64_t rows, int cols) {
  constexpr int kPack = 16 / sizeof(T), kPacks = kItems<kPack>, kWaves = kThreads / kWave;
  extern __shared__ __align__(16) uint4 memory[];
  __shared__ float scratch[2][kTurns][kWave];
  const int tid = threadIdx.x;
  const auto column = [&](int item) { return (item * kThreads + tid) * kPack; };
  const auto place = [&](int stage, int turn, int item) {
    return memory + ((stage * kTurns + turn) * kPacks + item) * kThreads + tid;
  };
  const auto request = [&](int64_t row, int stage) {
#pragma unroll
    for (int u = 0; u < kTurns; ++u) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (row + u >= rows || column(i) >= cols) continue;
        copy(place(stage, u, i), x + (row + u) * cols + column(i));
      }
    }
    commit();
  };

  const int64_t step = (int64_t)gridDim.x * kTurns;
  int64_t row = (int64_t)blockIdx.x * kTurns;
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) request(row + i * step, i);
  Values<kPack> inverse[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (column(i) >= cols) continue;
    inverse[i] = floats<kPack>(smooth + column(i));
#pragma unroll
    for (int j = 0; j < kPack; ++j) inverse[i].v[j] = 1.0f / inverse[i].v[j];
  }

  for (int turn = 0, stage = 0; row < rows; ++turn, row += step) {
    settle<kStages - 2>();
    Pack<T, kPack> packs[kTurns][kPacks];
    float largest[kTurns] = {};
#pragma unroll
    for (int u = 0; u < kTurns; ++u) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (row + u >= rows || column(i) >= cols) continue;
        packs[u][i].bits = *place(stage, u, i);
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          largest[u] = fmaxf(largest[u], fabsf(to_float(packs[u][i].v[j]) * inverse[i].v[j]));
        }
      }
    }
    request(row + (kStages - 1) * step, stage == 0 ? kStages - 1 : stage - 1);

#pragma unroll
    for (int distance = kWave / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int u = 0; u < kTurns; ++u) {
        largest[u] = fmaxf(largest[u], __shfl_xor(largest[u], distance, kWave));
      }
    }
    if (tid % kWave == 0) {  // halves of scratch alternate, so that one barrier is enough
#pragma unroll
      for (int u = 0; u < kTurns; ++u) scratch[turn % 2][u][tid / kWave] = largest[u];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < kTurns; ++u) largest[u] = scratch[turn % 2][u][tid % kWaves];
#pragma unroll
    for (int distance = kWaves / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int u = 0; u < kTurns; ++u) {
        largest[u] = fmaxf(largest[u], __shfl_xor(largest[u], distance, kWave));
      }
    }

#pragma unroll
    for (int u = 0; u < kTurns; ++u) {
      if (row + u >= rows) continue;
      const float of_step = largest[u] / 127.0f;
      if (tid == 0) scale[row + u] = of_step;
      // A step has no finite inverse below the normal numbers: those values are scaled up first.
      const float scaled = of_step < 1e-37f ? 1e12f : 1.0f;
      const float per_step = of_step > 0.0f ? 1.0f / (of_step * scaled) : 0.0f;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (column(i) >= cols) continue;
        Bytes<kPack> bytes;
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          // Added to this number, a small one is rounded to an integer: the sum's last bits.
          const float value = to_float(packs[u][i].v[j]) * inverse[i].v[j] * scaled;
          bytes.v[j] = (uint8_t)__float_as_uint(fmaf(value, per_step, 12582912.0f));
        }
        reinterpret_cast<Bytes<kPack>*>(q + (row + u) * cols + column(i))->bits = bytes.bits;
      }
    }
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
  settle<0>();
}
#endif

template <class T, int kPack, bool kEdges>
void by_length(const T* x, const float* smooth, int8_t* q, float* scale, int64_t rows, int64_t cols,
               hipStream_t stream) {
  const int64_t packs = kEdges ? (cols + 2 * (kPack - 1)) / kPack : cols / kPack;
#ifdef STAGES
  if constexpr (kPack > 1 && !kEdges) {
    int device = 0, processors = 0;
    (void)hipGetDevice(&device);
    (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
    constexpr int kTurns = 2, kStages = 3, kBlocks = 1;
    const int64_t turns = (rows + kTurns - 1) / kTurns, blocks = (int64_t)processors * kBlocks;
    if (packs > 256 * kItems<kPack> && packs <= 512 * kItems<kPack> && turns >= 4 * blocks) {
      const auto kernel = quantise_long_rows<T, 512, kTurns, kStages, kBlocks>;
      constexpr int kBytes = kTurns * kStages * kItems<kPack> * 512 * 16;
      (void)hipFuncSetAttribute((const void*)kernel, hipFuncAttributeMaxDynamicSharedMemorySize,
                                kBytes);
      kernel<<<dim3((unsigned)blocks), dim3(512), kBytes, stream>>>(x, smooth, q, scale, rows,
                                                                    (int)cols);
      return;
    }
  }
#endif
  if (packs <= 8 * kItems<kPack>) {
    launch<T, kPack, 8, true, kEdges>(x, smooth, q, scale, rows, cols, stream);
  } else if (packs <= kWave * kItems<kPack>) {
    launch<T, kPack, kWave, true, kEdges>(x, smooth, q, scale, rows, cols, stream);
  } else if (packs <= 128 * kItems<kPack>) {
    launch<T, kPack, 128, true, kEdges>(x, smooth, q, scale, rows, cols, stream);
  } else if (packs <= 256 * kItems<kPack>) {
    launch<T, kPack, 256, true, kEdges>(x, smooth, q, scale, rows, cols, stream);
  } else if (packs <= 512 * kItems<kPack>) {
    launch<T, kPack, 512, true, kEdges>(x, smooth, q, scale, rows, cols, stream);
  } else if (packs <= 1024 * kItems<kPack>) {
    launch<T, kPack, 1024, true, kEdges>(x, smooth, q, scale, rows, cols, stream);
  } else {
    launch<T, kPack, 1024, false, kEdges>(x, smooth, q, scale, rows, cols, stream);
  }
}

template <class T> hipError_t token_quant(const T* x, const float* smooth, int8_t* q, float* scale,
                                          int64_t rows, int64_t cols, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const bool aligned = ((uintptr_t)x | (uintptr_t)q) % 16 == 0;
  if (aligned && cols % kPack == 0 && (uintptr_t)smooth % 16 == 0) {
    by_length<T, kPack, false>(x, smooth, q, scale, rows, cols, stream);
  } else if (aligned) {
    by_length<T, kPack, true>(x, smooth, q, scale, rows, cols, stream);
  } else {
    by_length<T, 1, false>(x, smooth, q, scale, rows, cols, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t token_quant_f32(const float* x, const float* smooth, int8_t* q, float* scale,
                                      int64_t rows, int64_t cols, hipStream_t stream) {
  return token_quant(x, smooth, q, scale, rows, cols, stream);
}

extern "C" hipError_t token_quant_f16(const __half* x, const float* smooth, int8_t* q, float* scale,
                                      int64_t rows, int64_t cols, hipStream_t stream) {
  return token_quant(x, smooth, q, scale, rows, cols, stream);
}

extern "C" hipError_t token_quant_bf16(const __hip_bfloat16* x, const float* smooth, int8_t* q,
                                       float* scale, int64_t rows, int64_t cols,
                                       hipStream_t stream) {
  return token_quant(x, smooth, q, scale, rows, cols, stream);
}
