// Gradients of RMS normalisation that read x and dy once. Lanes keep their columns: a block goes
// down over many rows, writes dx of each, and adds up what the row contributes to dweight in
// registers. The next row is requested before the present one is looked at, where registers allow.
// On NVIDIA, rows in packs wait in shared memory, of which there is room for several: each thread
// reads only what it has written.
// Blocks write their sums of columns to the workspace, and a second kernel adds these up, in an
// order that is always the same.
//
// Where rows are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;          // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;        // threads of a block of several rows
constexpr int kResident = 1024;    // threads of a processor
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

// The sum of the values of the kLanes lanes of a row. Calls alternate between two halves of
// `scratch`, so that one barrier is enough: what a call reads is written by the next but one.
template <int kLanes> __device__ float row_sum(float value, float* scratch, int turn) {
  constexpr int kFirst = kLanes < kWave ? kLanes : kWave, kWaves = kLanes / kFirst;
#pragma unroll
  for (int distance = kFirst / 2; distance > 0; distance /= 2) {
    value += __shfl_xor(value, distance, kWave);
  }
  if constexpr (kWaves > 1) {
    float* sums = scratch + turn % 2 * kWave;
    if (threadIdx.x % kWave == 0) sums[threadIdx.x / kWave] = value;
    __syncthreads();
    value = sums[threadIdx.x % kWaves];
#pragma unroll
    for (int distance = kWaves / 2; distance > 0; distance /= 2) {
      value += __shfl_xor(value, distance, kWave);
    }
  }
  return value;
}

template <class T, int kPack, int kItems> struct Packs {
  Pack<T, kPack> x[kItems], dy[kItems];
  float scale;
};

template <class T, int kPack, int kThreads, int kLanes, int kItems>
__global__ __launch_bounds__(kThreads) void gradients(
    const T* __restrict__ x, const T* __restrict__ weight, const float* __restrict__ rstd,
    const T* __restrict__ dy, T* __restrict__ dx, float* __restrict__ partial, int64_t rows,
    int cols) {
  constexpr int kRows = kThreads / kLanes, kSpan = kLanes * kItems * kPack;
  // Whether there are registers for sums, weights and two rows.
  constexpr int kWords = kItems * (kPack > 1 ? 4 : 1);
  constexpr bool kAhead = kItems * kPack + 5 * kWords <= 64;
  __shared__ float scratch[2 * kWave];
  __shared__ __align__(16) float joined[kRows > 1 ? kSpan : 4];
  const int lane = threadIdx.x % kLanes, team = threadIdx.x / kLanes;
  const auto column = [&](int item) { return (item * kLanes + lane) * kPack; };
  const auto request = [&](int64_t row, Packs<T, kPack, kItems>& packs) {
    if (row >= rows) return;
    packs.scale = rstd[row];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (column(i) >= cols) continue;
      packs.x[i] = read<T, kPack>(x + row * cols + column(i));
      packs.dy[i] = read<T, kPack>(dy + row * cols + column(i));
    }
  };

  Pack<T, kPack> kept[kAhead ? kItems : 1];
  if constexpr (kAhead) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (column(i) < cols) kept[i] = read<T, kPack>(weight + column(i));
    }
  }
  const auto gain = [&](int item) {
    return kAhead ? kept[item] : read<T, kPack>(weight + column(item));
  };

  float sums[kItems][kPack] = {};
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
    const float scale = packs.scale;
    float products = 0.0f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (!inside || column(i) >= cols) continue;
      const Pack<T, kPack> weights = gain(i);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float gradient = to_float(packs.dy[i].v[j]);
        const float normal = to_float(packs.x[i].v[j]) * scale;
        products += gradient * to_float(weights.v[j]) * normal;
        sums[i][j] += gradient * normal;
      }
    }
    const float along = row_sum<kLanes>(products, scratch, turn) / (float)cols;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (!inside || column(i) >= cols) continue;
      const Pack<T, kPack> weights = gain(i);
      Pack<T, kPack> result;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float gradient = to_float(packs.dy[i].v[j]) * to_float(weights.v[j]);
        const float normal = to_float(packs.x[i].v[j]) * scale;
        result.v[j] = from_float<T>(scale * (gradient - normal * along));
      }
      write<T, kPack>(dx + row * cols + column(i), result);
    }
  }

  // One team after the other adds its sums to those before it.
  constexpr int kPart = kPack > 1 ? 4 : 1;
  float* out = partial + (int64_t)blockIdx.x * cols;
#pragma unroll 1
  for (int turn = 0; turn < kRows; ++turn) {
    if (turn > 0) __syncthreads();
    if (team != turn) continue;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; j += kPart) {
        const int col = column(i) + j;
        if (col >= cols) continue;
        Pack<float, kPart> part;
#pragma unroll
        for (int k = 0; k < kPart; ++k) part.v[k] = sums[i][j + k];
        if (turn > 0) {
          const Pack<float, kPart> others = read<float, kPart>(joined + col);
#pragma unroll
          for (int k = 0; k < kPart; ++k) part.v[k] += others.v[k];
        }
        write<float, kPart>(turn == kRows - 1 ? out + col : joined + col, part);
      }
    }
  }
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
template <class T, int kThreads, int kLanes, int kItems, int kTurns, int kStages, int kBlocks>
__global__ __launch_bounds__(kThreads, kBlocks) void staged_gradients(
    const T* __restrict__ x, const T* __restrict__ weight, const float* __restrict__ rstd,
    const T* __restrict__ dy, T* __restrict__ dx, float* __restrict__ partial, int64_t rows,
    int cols) {
  constexpr int kPack = 16 / sizeof(T), kRows = kThreads / kLanes, kSpan = kLanes * kItems * kPack;
  constexpr int kStage = kTurns * kItems * 2 * kThreads;  // packs
  constexpr int kFirst = kLanes < kWave ? kLanes : kWave, kWaves = kLanes / kFirst;
  extern __shared__ __align__(16) uint4 memory[];
  __shared__ float scratch[2][kTurns][kWave];
  __shared__ __align__(16) float joined[kRows > 1 ? kSpan : 4];
  const int tid = threadIdx.x, lane = tid % kLanes, team = tid / kLanes;
  const auto column = [&](int item) { return (item * kLanes + lane) * kPack; };
  const auto row_of = [&](int64_t round, int turn) {
    return (round * kTurns + turn) * kRows + team;
  };
  const auto place = [&](int stage, int turn, int item) {
    return memory + stage * kStage + (turn * kItems + item) * 2 * kThreads + tid;
  };
  const auto request = [&](int64_t round, int stage) {
#pragma unroll
    for (int u = 0; u < kTurns; ++u) {
      const int64_t row = row_of(round, u);
      if (row < rows) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
          if (column(i) >= cols) continue;
          copy(place(stage, u, i), x + row * cols + column(i));
          copy(place(stage, u, i) + kThreads, dy + row * cols + column(i));
        }
      }
    }
    commit();
  };

  int64_t round = blockIdx.x;
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) request(round + (int64_t)i * gridDim.x, i);
  float scales[kTurns];
#pragma unroll
  for (int u = 0; u < kTurns; ++u) {
    const int64_t row = row_of(round, u);
    scales[u] = row < rows ? rstd[row] : 0.0f;
  }
  Pack<T, kPack> weights[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (column(i) < cols) weights[i] = read<T, kPack>(weight + column(i));
  }
  const float per_column = 1.0f / (float)cols;

  float sums[kItems][kPack] = {};
  // All teams of a block go on while one has a row: they share shuffles and barriers.
  for (int turn = 0, stage = 0; round * kTurns * kRows < rows; ++turn, round += gridDim.x) {
    settle<kStages - 2>();
    Pack<T, kPack> normals[kTurns][kItems], gradients[kTurns][kItems];
    float next[kTurns], along[kTurns];
#pragma unroll
    for (int u = 0; u < kTurns; ++u) {
      const int64_t row = row_of(round + gridDim.x, u);
      next[u] = row < rows ? rstd[row] : 0.0f;
      const bool inside = row_of(round, u) < rows;
      float products = 0.0f;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if (!inside || column(i) >= cols) continue;
        normals[u][i].bits = *place(stage, u, i);
        gradients[u][i].bits = *(place(stage, u, i) + kThreads);
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          const float gradient = to_float(gradients[u][i].v[j]);
          const float both = gradient * (to_float(normals[u][i].v[j]) * scales[u]);
          products = fmaf(both, to_float(weights[i].v[j]), products);
          sums[i][j] += both;
        }
      }
      along[u] = products;
    }
    const int before = stage == 0 ? kStages - 1 : stage - 1;  // which has been read
    request(round + (int64_t)(kStages - 1) * gridDim.x, before);

#pragma unroll
    for (int distance = kFirst / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int u = 0; u < kTurns; ++u) along[u] += __shfl_xor(along[u], distance, kWave);
    }
    if constexpr (kWaves > 1) {  // halves of scratch alternate, so that one barrier is enough
      if (tid % kWave == 0) {
#pragma unroll
        for (int u = 0; u < kTurns; ++u) scratch[turn % 2][u][tid / kWave] = along[u];
      }
      __syncthreads();
#pragma unroll
      for (int u = 0; u < kTurns; ++u) along[u] = scratch[turn % 2][u][tid % kWaves];
#pragma unroll
      for (int distance = kWaves / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (int u = 0; u < kTurns; ++u) along[u] += __shfl_xor(along[u], distance, kWave);
      }
    }

#pragma unroll
    for (int u = 0; u < kTurns; ++u) {
      const int64_t row = row_of(round, u);
      const float scale = scales[u], part = along[u] * per_column * scale;
      scales[u] = next[u];
      if (row >= rows) continue;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if (column(i) >= cols) continue;
        Pack<T, kPack> result;
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          const float gradient = to_float(gradients[u][i].v[j]) * to_float(weights[i].v[j]);
          result.v[j] =
              from_float<T>(scale * fmaf(to_float(normals[u][i].v[j]), -part, gradient));
        }
        write<T, kPack>(dx + row * cols + column(i), result);
      }
    }
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
  settle<0>();

  // One team after the other adds its sums to those before it.
  float* out = partial + (int64_t)blockIdx.x * cols;
#pragma unroll 1
  for (int turn = 0; turn < kRows; ++turn) {
    if (turn > 0) __syncthreads();
    if (team != turn) continue;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; j += 4) {
        const int col = column(i) + j;
        if (col >= cols) continue;
        Pack<float, 4> part;
#pragma unroll
        for (int k = 0; k < 4; ++k) part.v[k] = sums[i][j + k];
        if (turn > 0) {
          const Pack<float, 4> others = read<float, 4>(joined + col);
#pragma unroll
          for (int k = 0; k < 4; ++k) part.v[k] += others.v[k];
        }
        write<float, 4>(turn == kRows - 1 ? out + col : joined + col, part);
      }
    }
  }
}
#endif

// A block adds up the sums of kWave columns; each of its waves those of every kWave-th block.
__global__ __launch_bounds__(kWave * kWave) void finish(const float* __restrict__ partial,
                                                        float* __restrict__ dweight, int blocks,
                                                        int cols) {
  __shared__ float sums[kWave][kWave + 1];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  const int col = blockIdx.x * kWave + lane;
  float sum = 0.0f;
  if (col < cols) {
#pragma unroll 8
    for (int block = wave; block < blocks; block += kWave) {
      sum += partial[(int64_t)block * cols + col];
    }
  }
  sums[wave][lane] = sum;
  __syncthreads();
  sum = sums[lane][wave];
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor(sum, distance, kWave);
  }
  if (lane == 0 && blockIdx.x * kWave + wave < cols) dweight[blockIdx.x * kWave + wave] = sum;
}

template <class T, int kPack> void by_length(const T* x, const T* weight, const float* rstd,
                                             const T* dy, T* dx, float* dweight, int64_t rows,
                                             int cols, float* partial, hipStream_t stream) {
  int device = 0, processors = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  const auto start = [&](auto kernel, int threads, int lanes) {
    const int64_t rows_of_block = threads / lanes;
    const int64_t turns = (rows + rows_of_block - 1) / rows_of_block;
    int64_t blocks = (int64_t)processors * (kResident / threads);
    if (blocks > kMaxBlocks) blocks = kMaxBlocks;
    if (blocks < 1) blocks = 1;
    const int64_t turns_of_block = (turns + blocks - 1) / blocks;
    blocks = (turns + turns_of_block - 1) / turns_of_block;  // no more than all take as long
    kernel<<<dim3((unsigned)blocks), dim3(threads), 0, stream>>>(x, weight, rstd, dy, dx, partial,
                                                                 rows, cols);
    finish<<<dim3((unsigned)((cols + kWave - 1) / kWave)), dim3(kWave * kWave), 0, stream>>>(
        partial, dweight, (int)blocks, cols);
  };
#ifdef STAGES
  if constexpr (kPack > 1) {
    const auto start_staged = [&](auto kernel, int threads, int lanes, int rows_at_once,
                                  int bytes, int resident) {
      (void)hipFuncSetAttribute((const void*)kernel, hipFuncAttributeMaxDynamicSharedMemorySize,
                                bytes);
      const int64_t rows_of_block = (int64_t)threads / lanes * rows_at_once;
      const int64_t turns = (rows + rows_of_block - 1) / rows_of_block;
      int64_t blocks = (int64_t)processors * resident;
      if (blocks > kMaxBlocks) blocks = kMaxBlocks;
      if (blocks < 1) blocks = 1;
      const int64_t turns_of_block = (turns + blocks - 1) / blocks;
      blocks = (turns + turns_of_block - 1) / turns_of_block;
      kernel<<<dim3((unsigned)blocks), dim3(threads), bytes, stream>>>(x, weight, rstd, dy, dx,
                                                                       partial, rows, cols);
      finish<<<dim3((unsigned)((cols + kWave - 1) / kWave)), dim3(kWave * kWave), 0, stream>>>(
          partial, dweight, (int)blocks, cols);
    };
    const int packs = cols / kPack;
    if (packs <= 16) {
      return start_staged(staged_gradients<T, 256, 16, 1, 1, 4, 4>, 256, 16, 1,
                          32768, 4);
    }
    if (packs <= 32) {
      return start_staged(staged_gradients<T, 256, 32, 1, 1, 4, 4>, 256, 32, 1,
                          32768, 4);
    }
    if (packs <= 256) {
      return start_staged(staged_gradients<T, 256, 256, 1, 1, 4, 4>, 256, 256, 1,
                          32768, 4);
    }
    if (packs <= 512) {
      return start_staged(staged_gradients<T, 512, 512, 1, 1, 5, 2>, 512, 512, 1,
                          81920, 2);
    }
    if (packs <= 1024) {
      return start_staged(staged_gradients<T, 1024, 1024, 1, 1, 5, 1>, 1024, 1024, 1,
                          163840, 1);
    }
  }
#endif
  constexpr int kMost = 8 / kPack;  // packs of eight elements, of which short rows hold one or more
  const int packs = cols / kPack;
  if (packs <= 16) return start(gradients<T, kPack, kBlock, 16, 1>, kBlock, 16);
  if (packs <= 32 * kMost) return start(gradients<T, kPack, kBlock, 32, kMost>, kBlock, 32);
  if (packs <= 64 * kMost) return start(gradients<T, kPack, kBlock, 32, 2 * kMost>, kBlock, 32);
  if (packs <= 256 * kMost) return start(gradients<T, kPack, 256, 256, kMost>, 256, 256);
  if constexpr (kPack == 1) {  // with fewer registers, so that two blocks share a processor
    if (packs <= 512 * 5) return start(gradients<T, 1, 512, 512, 5>, 512, 512);
  }
  if (packs <= 512 * kMost) return start(gradients<T, kPack, 512, 512, kMost>, 512, 512);
  if (packs <= 1024 * kMost) return start(gradients<T, kPack, 512, 512, 2 * kMost>, 512, 512);
  start(gradients<T, kPack, 512, 512, 4 * kMost>, 512, 512);
}

template <class T>
hipError_t rmsnorm_backward(const T* x, const T* weight, const float* rstd, const T* dy, T* dx,
                            float* dweight, int64_t rows, int64_t cols, void* workspace,
                            hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)weight | (uintptr_t)dy | (uintptr_t)dx;
  const bool aligned = cols % kPack == 0 && places % 16 == 0;
  const auto start = aligned ? by_length<T, kPack> : by_length<T, 1>;
  start(x, weight, rstd, dy, dx, dweight, rows, (int)cols, static_cast<float*>(workspace), stream);
  return hipGetLastError();
}

size_t workspace_bytes(int64_t rows, int64_t cols) {
  return (rows < kMaxBlocks ? rows : kMaxBlocks) * cols * sizeof(float);
}

}  // namespace

extern "C" size_t rmsnorm_backward_f32_workspace(int64_t rows, int64_t cols) {
  return workspace_bytes(rows, cols);
}

extern "C" size_t rmsnorm_backward_f16_workspace(int64_t rows, int64_t cols) {
  return workspace_bytes(rows, cols);
}

extern "C" size_t rmsnorm_backward_bf16_workspace(int64_t rows, int64_t cols) {
  return workspace_bytes(rows, cols);
}

extern "C" hipError_t rmsnorm_backward_f32(const float* x, const float* weight, const float* rstd,
                                           const float* dy, float* dx, float* dweight, int64_t rows,
                                           int64_t cols, void* workspace, hipStream_t stream) {
  return rmsnorm_backward(x, weight, rstd, dy, dx, dweight, rows, cols, workspace, stream);
}

extern "C" hipError_t rmsnorm_backward_f16(const __half* x, const __half* weight, const float* rstd,
                                           const __half* dy, __half* dx, float* dweight,
                                           int64_t rows, int64_t cols, void* workspace,
                                           hipStream_t stream) {
  return rmsnorm_backward(x, weight, rstd, dy, dx, dweight, rows, cols, workspace, stream);
}

extern "C" hipError_t rmsnorm_backward_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                            const float* rstd, const __hip_bfloat16* dy,
                                            __hip_bfloat16* dx, float* dweight, int64_t rows,
                                            int64_t cols, void* workspace, hipStream_t stream) {
  return rmsnorm_backward(x, weight, rstd, dy, dx, dweight, rows, cols, workspace, stream);
}
