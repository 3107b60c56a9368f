// Gradients of a residual sum and layer normalisation that read each tensor once. Lanes keep their
// columns: a block goes down over many rows, writes dx of each, and adds up what the row gives to
// dweight and dbias in registers. h and dy of the next row are requested before the present one is
// looked at, where registers allow, and dh of the present one before its sums are made. Blocks
// write their sums of columns to the workspace, and a second kernel adds these up, in an order that
// is always the same.
//
// Weights are read again for each row, from the cache: they would take the registers of the next.
//
// Where rows are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;  // lanes that reduce by shuffles, also in waves of 64
constexpr int64_t kMaxBlocks = 1280;

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

// Both sums over the kLanes lanes of a row. Calls alternate between two halves of `scratch`, so
// that one barrier is enough: what a call reads is written by the next but one.
template <int kLanes> __device__ Pair row_sum(Pair pair, Pair* scratch, int turn) {
  constexpr int kFirst = kLanes < kWave ? kLanes : kWave, kWaves = kLanes / kFirst;
  pair = shuffled_sum<kFirst>(pair);
  if constexpr (kWaves > 1) {
    Pair* sums = scratch + turn % 2 * kWave;
    const int team = threadIdx.x / kLanes * kWaves;
    if (threadIdx.x % kWave == 0) sums[threadIdx.x / kWave] = pair;
    __syncthreads();
    pair = shuffled_sum<kWaves>(sums[team + threadIdx.x % kWaves]);
  }
  return pair;
}

template <class T, int kPack, int kItems> struct Packs {
  Pack<T, kPack> h[kItems], dy[kItems];
  float mean, rstd;
};

template <class T, int kPack, int kThreads, int kLanes, int kItems, int kBlocks>
__global__ __launch_bounds__(kThreads, kBlocks) void gradients(
    const T* __restrict__ h, const T* __restrict__ weight, const float* __restrict__ mean,
    const float* __restrict__ rstd, const T* __restrict__ dy, const T* __restrict__ dh,
    T* __restrict__ dx, float* __restrict__ partial, int64_t rows, int cols) {
  constexpr int kRows = kThreads / kLanes, kSpan = kLanes * kItems * kPack;
  // Whether there are registers for the sums, for two values of each element of this row, which
  // live while its sums are made, and for what has come of this row and the next.
  constexpr int kWords = kItems * (kPack > 1 ? 4 : 1);
  constexpr bool kAhead = 4 * kItems * kPack + 3 * kWords <= (kThreads > 128 ? 88 : 132);
  __shared__ Pair scratch[2 * kWave];
  __shared__ __align__(16) float joined[kRows > 1 ? 2 * kSpan : 4];
  const int lane = threadIdx.x % kLanes, team = threadIdx.x / kLanes;
  const auto column = [&](int item) { return (item * kLanes + lane) * kPack; };
  const auto request = [&](int64_t row, Packs<T, kPack, kItems>& packs) {
    if (row >= rows) return;
    packs.mean = mean[row];
    packs.rstd = rstd[row];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (column(i) >= cols) continue;
      packs.h[i] = read<T, kPack>(h + row * cols + column(i));
      packs.dy[i] = read<T, kPack>(dy + row * cols + column(i));
    }
  };

  float sums[2][kItems][kPack] = {};  // of dweight and of dbias
  const int64_t step = (int64_t)gridDim.x * kRows;
  int64_t row = (int64_t)blockIdx.x * kRows + team;
  Packs<T, kPack, kItems> next;
  if constexpr (kAhead) request(row, next);
  // All teams of a block go on while one has a row: they share shuffles and barriers.
  for (int turn = 0; row - team < rows; ++turn, row += step) {
    Packs<T, kPack, kItems> packs;
    if constexpr (kAhead) {
      packs = next;
      request(row + step, next);
    } else {
      request(row, packs);
    }
    const bool inside = row < rows;
    Pack<T, kPack> passed[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (inside && column(i) < cols) passed[i] = read<T, kPack>(dh + row * cols + column(i));
    }
    Pair along = {};
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (!inside || column(i) >= cols) continue;
      const Pack<T, kPack> weights = read<T, kPack>(weight + column(i));
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float gradient = to_float(packs.dy[i].v[j]);
        const float normal = (to_float(packs.h[i].v[j]) - packs.mean) * packs.rstd;
        const float inner = gradient * to_float(weights.v[j]);
        along.first += inner;
        along.second += inner * normal;
        sums[0][i][j] += gradient * normal;
        sums[1][i][j] += gradient;
      }
    }
    along = row_sum<kLanes>(along, scratch, turn);
    along.first /= (float)cols;
    along.second /= (float)cols;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (!inside || column(i) >= cols) continue;
      const Pack<T, kPack> weights = read<T, kPack>(weight + column(i));
      Pack<T, kPack> result;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float inner = to_float(packs.dy[i].v[j]) * to_float(weights.v[j]);
        const float normal = (to_float(packs.h[i].v[j]) - packs.mean) * packs.rstd;
        const float through = inner - along.first - normal * along.second;
        result.v[j] = from_float<T>(to_float(passed[i].v[j]) + packs.rstd * through);
      }
      write<T, kPack>(dx + row * cols + column(i), result);
    }
  }

  // One team after the other adds its sums to those before it.
  constexpr int kPart = kPack > 1 ? 4 : 1;
  float* out = partial + (int64_t)blockIdx.x * 2 * cols;
#pragma unroll 1
  for (int turn = 0; turn < kRows; ++turn) {
    if (turn > 0) __syncthreads();
    if (team != turn) continue;
#pragma unroll
    for (int of = 0; of < 2; ++of) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
#pragma unroll
        for (int j = 0; j < kPack; j += kPart) {
          const int col = column(i) + j;
          if (col >= cols) continue;
          Pack<float, kPart> part;
#pragma unroll
          for (int k = 0; k < kPart; ++k) part.v[k] = sums[of][i][j + k];
          float* const shared = joined + of * kSpan + col;
          if (turn > 0) {
            const Pack<float, kPart> others = read<float, kPart>(shared);
#pragma unroll
            for (int k = 0; k < kPart; ++k) part.v[k] += others.v[k];
          }
          write<float, kPart>(turn == kRows - 1 ? out + of * cols + col : shared, part);
        }
      }
    }
  }
}

// A block adds up the sums of kWave columns of both results, which lie one behind the other; each
// of its waves those of every kWave-th block. In doubles: where rows far from zero take turns, all
// that a wave adds up may have one sign, and only the last steps cancel.
__global__ __launch_bounds__(kWave * kWave) void finish(const float* __restrict__ partial,
                                                        float* __restrict__ dweight,
                                                        float* __restrict__ dbias, int blocks,
                                                        int cols) {
  __shared__ double sums[kWave][kWave + 1];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  const int col = blockIdx.x * kWave + lane;
  double sum = 0.0;
  if (col < 2 * cols) {
#pragma unroll 8
    for (int block = wave; block < blocks; block += kWave) {
      sum += partial[(int64_t)block * 2 * cols + col];
    }
  }
  sums[wave][lane] = sum;
  __syncthreads();
  sum = sums[lane][wave];
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor(sum, distance, kWave);
  }
  const int own = blockIdx.x * kWave + wave;
  if (lane == 0 && own < 2 * cols) {
    *(own < cols ? dweight + own : dbias + (own - cols)) = (float)sum;
  }
}

template <class T, int kPack>
void by_length(const T* h, const T* weight, const float* mean, const float* rstd, const T* dy,
               const T* dh, T* dx, float* dweight, float* dbias, int64_t rows, int cols,
               float* partial, hipStream_t stream) {
  int device = 0, processors = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  // As many blocks as run at once, of `resident` on a processor.
  const auto start = [&](auto kernel, int threads, int lanes, int resident) {
    const int64_t rows_of_block = threads / lanes;
    const int64_t turns = (rows + rows_of_block - 1) / rows_of_block;
    int64_t blocks = (int64_t)processors * resident;
    if (blocks > kMaxBlocks) blocks = kMaxBlocks;
    if (blocks < 1) blocks = 1;
    const int64_t turns_of_block = (turns + blocks - 1) / blocks;
    blocks = (turns + turns_of_block - 1) / turns_of_block;  // no more than all take as long
    kernel<<<dim3((unsigned)blocks), dim3(threads), 0, stream>>>(h, weight, mean, rstd, dy, dh, dx,
                                                                 partial, rows, cols);
    finish<<<dim3((unsigned)((2 * cols + kWave - 1) / kWave)), dim3(kWave * kWave), 0, stream>>>(
        partial, dweight, dbias, (int)blocks, cols);
  };
  constexpr int kMost = 8 / kPack;  // packs of eight elements, of which short rows hold one or more
  constexpr int kShort = kPack == 8 ? 3 : 2;  // blocks of 256 threads whose registers fit
  const int packs = cols / kPack;
  if (packs <= 16) return start(gradients<T, kPack, 256, 16, 1, 3>, 256, 16, 3);
  if (packs <= 32 * kMost) {
    return start(gradients<T, kPack, 256, 32, kMost, kShort>, 256, 32, kShort);
  }
  if constexpr (kPack == 8) {  // no barriers, and no idle lanes for 768 columns
    if (packs <= 32 * 3) return start(gradients<T, kPack, 128, 32, 3, 3>, 128, 32, 3);
  }
  if constexpr (kPack == 1) {  // rows that are not aligned: more threads request more at once
    if (packs <= 128 * kMost) return start(gradients<T, kPack, 256, 256, kMost / 2, 4>, 256, 256, 4);
  }
  if (packs <= 128 * kMost) {
    return start(gradients<T, kPack, 256, 128, kMost, kShort>, 256, 128, kShort);
  }
  if (packs <= 256 * kMost) {
    return start(gradients<T, kPack, 256, 256, kMost, kShort>, 256, 256, kShort);
  }
  if (packs <= 512 * kMost) {
    if constexpr (kPack == 8) return start(gradients<T, kPack, 256, 256, 2, 2>, 256, 256, 2);
    return start(gradients<T, kPack, 512, 512, kMost, 1>, 512, 512, 1);
  }
  if (packs <= 1024 * kMost) {
    return start(gradients<T, kPack, 512, 512, 2 * kMost, 1>, 512, 512, 1);
  }
  start(gradients<T, kPack, 512, 512, 4 * kMost, 1>, 512, 512, 1);
}

template <class T>
hipError_t add_layernorm_backward(const T* h, const T* weight, const float* mean, const float* rstd,
                                  const T* dy, const T* dh, T* dx, float* dweight, float* dbias,
                                  int64_t rows, int64_t cols, void* workspace, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places =
      (uintptr_t)h | (uintptr_t)weight | (uintptr_t)dy | (uintptr_t)dh | (uintptr_t)dx;
  const bool aligned = cols % kPack == 0 && places % 16 == 0;
  const auto start = aligned ? by_length<T, kPack> : by_length<T, 1>;
  start(h, weight, mean, rstd, dy, dh, dx, dweight, dbias, rows, (int)cols,
        static_cast<float*>(workspace), stream);
  return hipGetLastError();
}

size_t workspace_bytes(int64_t rows, int64_t cols) {
  return (rows < kMaxBlocks ? rows : kMaxBlocks) * 2 * cols * sizeof(float);
}

}  // namespace

extern "C" size_t add_layernorm_backward_f32_workspace(int64_t rows, int64_t cols) {
  return workspace_bytes(rows, cols);
}

extern "C" size_t add_layernorm_backward_f16_workspace(int64_t rows, int64_t cols) {
  return workspace_bytes(rows, cols);
}

extern "C" size_t add_layernorm_backward_bf16_workspace(int64_t rows, int64_t cols) {
  return workspace_bytes(rows, cols);
}

extern "C" hipError_t add_layernorm_backward_f32(const float* h, const float* weight,
                                                 const float* mean, const float* rstd,
                                                 const float* dy, const float* dh, float* dx,
                                                 float* dweight, float* dbias, int64_t rows,
                                                 int64_t cols, void* workspace,
                                                 hipStream_t stream) {
  return add_layernorm_backward(h, weight, mean, rstd, dy, dh, dx, dweight, dbias, rows, cols,
                                workspace, stream);
}

extern "C" hipError_t add_layernorm_backward_f16(const __half* h, const __half* weight,
                                                 const float* mean, const float* rstd,
                                                 const __half* dy, const __half* dh, __half* dx,
                                                 float* dweight, float* dbias, int64_t rows,
                                                 int64_t cols, void* workspace,
                                                 hipStream_t stream) {
  return add_layernorm_backward(h, weight, mean, rstd, dy, dh, dx, dweight, dbias, rows, cols,
                                workspace, stream);
}

extern "C" hipError_t add_layernorm_backward_bf16(
    const __hip_bfloat16* h, const __hip_bfloat16* weight, const float* mean, const float* rstd,
    const __hip_bfloat16* dy, const __hip_bfloat16* dh, __hip_bfloat16* dx, float* dweight,
    float* dbias, int64_t rows, int64_t cols, void* workspace, hipStream_t stream) {
  return add_layernorm_backward(h, weight, mean, rstd, dy, dh, dx, dweight, dbias, rows, cols,
                                workspace, stream);
}
