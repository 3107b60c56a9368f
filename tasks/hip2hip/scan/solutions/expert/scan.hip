// Inclusive scan in one pass: every element is read once and written once.
//
// A block takes the next tile by ticket, scans it in registers with 32-lane shuffles,
// and publishes the tile's sum. It then waits for what lies before it: the sums of the
// earlier tiles of its window, and the total before the window, which the last tile of
// the window before has published. Only tiles that started earlier are waited for, so
// the wait ends whatever the number of blocks in flight. Unlike the usual decoupled
// look-back, which adds whatever happens to be ready, the terms and their order are
// fixed: the result is bitwise reproducible, and the chain of dependent steps is one
// step per window of tiles. On Hopper, blocks stay, and tiles arrive while others are
// worked on.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kGroup = 32;                 // lanes that cooperate by shuffles
constexpr int kGroups = kThreads / kGroup;
constexpr int kPacks = 4;                  // 16-byte packs of a thread
constexpr int kWindow = kThreads;          // tiles of a window: one is watched by each thread

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

// 16 bytes of T, moved by one instruction.
template <class T> struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T v[kSize];
};

template <class T> constexpr int kTile = kThreads * kPacks * Pack<T>::kSize;

// The pack at `from`, of which `left` elements exist, and zeros; `whole` allows one instruction.
template <class T> __device__ Pack<T> load(const T* from, int64_t left, bool whole) {
  if (whole && left >= Pack<T>::kSize) return *reinterpret_cast<const Pack<T>*>(from);
  Pack<T> pack;
#pragma unroll
  for (int i = 0; i < Pack<T>::kSize; ++i) pack.v[i] = i < left ? from[i] : from_float<T>(0.0f);
  return pack;
}

template <class T> __device__ void store(T* to, const Pack<T>& pack, int64_t left, bool whole) {
  if (whole && left >= Pack<T>::kSize) {
    *reinterpret_cast<Pack<T>*>(to) = pack;
    return;
  }
#pragma unroll
  for (int i = 0; i < Pack<T>::kSize; ++i) {
    if (i < left) to[i] = pack.v[i];
  }
}

// Workspace, zeroed before the kernel: a counter, then two arrays of mailboxes.
struct State {
  unsigned long long* tickets;
  unsigned long long* sums;     // [tiles]: the sum of each tile
  unsigned long long* totals;   // [windows]: the sum of everything before each window
};

int64_t words_of(int64_t tiles, int window) { return 1 + tiles + tiles / window + 1; }

State state_in(void* workspace, int64_t tiles) {
  auto* words = static_cast<unsigned long long*>(workspace);
  return {words, words + 1, words + 1 + tiles};
}

// A mailbox holds a float and, above it, whether it has been written: one 64-bit word,
// so that a reader sees both or neither and no fence is needed.
__device__ void publish(unsigned long long* mailbox, float value) {
  atomicExch(mailbox, (1ull << 32) | __float_as_uint(value));
}

__device__ float await(unsigned long long* mailbox) {
  unsigned long long word;
  do {
    word = *static_cast<volatile unsigned long long*>(mailbox);
  } while (word == 0);
  return __uint_as_float((unsigned)word);
}

// The sum of the values of the lanes up to and including this one.
__device__ float lanes_scan(float v, int lane) {
#pragma unroll
  for (int distance = 1; distance < kGroup; distance *= 2) {
    const float left = __shfl_up(v, distance, kGroup);
    if (lane >= distance) v += left;
  }
  return v;
}

__device__ float lanes_sum(float v) {
#pragma unroll
  for (int distance = kGroup / 2; distance > 0; distance /= 2) {
    v += __shfl_xor(v, distance, kGroup);
  }
  return v;
}

// The sum of everything before `tile`: all threads of the block, one barrier. What was
// waited for goes through shared memory, because after the waits the lanes of a group
// need not run together, as shuffles require.
template <int kWindow>
__device__ float sum_before(const State& state, int64_t tile, float (&scratch)[kWindow]) {
  const int64_t window = tile / kWindow;
  const int64_t neighbour = window * kWindow + threadIdx.x;
  if (threadIdx.x < kWindow) {
    float value = 0.0f;
    if (neighbour < tile) {
      value = await(state.sums + neighbour);
    } else if (threadIdx.x == kWindow - 1 && window > 0) {
      value = await(state.totals + window);
    }
    scratch[threadIdx.x] = value;
  }
  __syncthreads();
  float before = 0.0f;
#pragma unroll
  for (int i = 0; i < kWindow; i += kGroup) before += scratch[i + threadIdx.x % kGroup];
  return lanes_sum(before);
}

template <class T, bool kAligned>
__global__ __launch_bounds__(kThreads, 4) void scan_tiles(const T* __restrict__ x,
                                                          T* __restrict__ y, State state,
                                                          int64_t n) {
  constexpr int kPack = Pack<T>::kSize;
  __shared__ int64_t ticket;
  __shared__ float group_sums[kGroups], window_sums[kWindow];
  if (threadIdx.x == 0) ticket = (int64_t)atomicAdd(state.tickets, 1ull);
  __syncthreads();
  const int64_t tile = ticket;
  const int lane = threadIdx.x % kGroup;
  const int group = threadIdx.x / kGroup;
  // Each group of lanes owns a contiguous stretch, and in it each pack a contiguous piece.
  const int64_t first = tile * kTile<T> + (group * kPacks * kGroup + lane) * kPack;
  const auto start_of = [=](int p) { return first + p * kGroup * kPack; };

  float v[kPacks][kPack];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const Pack<T> pack = load(x + start_of(p), n - start_of(p), kAligned);
#pragma unroll
    for (int i = 0; i < kPack; ++i) v[p][i] = to_float(pack.v[i]);
  }

  float carry = 0.0f;  // the sum of the group's earlier packs
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
#pragma unroll
    for (int i = 1; i < kPack; ++i) v[p][i] += v[p][i - 1];
    const float inclusive = lanes_scan(v[p][kPack - 1], lane);
    const float left = __shfl_up(inclusive, 1, kGroup);
    const float before = lane == 0 ? carry : carry + left;
#pragma unroll
    for (int i = 0; i < kPack; ++i) v[p][i] += before;
    carry += __shfl(inclusive, kGroup - 1, kGroup);
  }

  if (lane == 0) group_sums[group] = carry;
  __syncthreads();
  float offset = 0.0f, sum = 0.0f;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (g == group) offset = sum;
    sum += group_sums[g];
  }

  if (threadIdx.x == 0) publish(state.sums + tile, sum);
  const float before = sum_before(state, tile, window_sums);
  if (threadIdx.x == 0 && tile % kWindow == kWindow - 1) {
    publish(state.totals + tile / kWindow + 1, before + sum);
  }

  offset += before;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    Pack<T> pack;
#pragma unroll
    for (int i = 0; i < kPack; ++i) pack.v[i] = from_float<T>(v[p][i] + offset);
    store(y + start_of(p), pack, n - start_of(p), kAligned);
  }
}

#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900
#define RESIDENT_BLOCKS
// Blocks that stay, each with three tiles in shared memory: one arrives, one has its sum published
// early, and one waits for what lies before it, which seldom takes long. Block b of B has the tiles
// b, b + B, b + 2B and so on, so that the first are asked for before anything else is ready, and
// all work at neighbouring tiles. They wait for each other: the device has to hold all at once.
namespace resident {

constexpr int kStages = 3, kPacks = 6;  // tiles of a block; packs of a thread
constexpr int kWindow = 128;            // 64 make the chain longer, 256 are looked at for longer
constexpr int kTileBytes = kThreads * kPacks * 16;
template <class T> constexpr int kTile = kTileBytes / sizeof(T);

using Barrier = unsigned long long;  // of the hardware: a tile has arrived

__device__ unsigned place(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// One thread: asks for the whole packs of a tile, if there is such a tile.
template <class T> __device__ void fetch(Barrier& arrived, T* to, const T* x, int64_t n, int tile) {
  const int64_t first = (int64_t)tile * kTile<T>, left = n - first;
  if (left <= 0) return;
  const unsigned bytes = (left < kTile<T> ? (int)left : kTile<T>) * sizeof(T) / 16 * 16;
  const unsigned full = place(&arrived);
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full), "r"(bytes)
               : "memory");
  if (bytes == 0) return;
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(place(to)), "l"(x + first), "r"(bytes), "r"(full) : "memory");
}

// Waits until the tile has arrived that is the barrier's `turn`-th.
__device__ void await(Barrier& arrived, int turn) {
  asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
               "@!done bra again;}" ::"r"(place(&arrived)), "r"(turn & 1) : "memory");
}

template <class T>
__global__ __launch_bounds__(kThreads, 3) void scan_tiles(const T* __restrict__ x,
                                                          T* __restrict__ y, State state,
                                                          int64_t n, int tiles) {
  constexpr int kPack = Pack<T>::kSize, kStep = kGroup * kPack;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Barrier arrived[kStages];
  __shared__ float group_sums[2][kGroups], window_sums[2][kWindow];  // others are one tile behind
  const int lane = threadIdx.x % kGroup, group = threadIdx.x / kGroup;
  const int own = (group * kPacks * kGroup + lane) * kPack;  // the thread's first element
  const auto tile_of = [](int i) { return (int)(blockIdx.x + i * gridDim.x); };  // the block's i-th
  const auto staged = [&](int i) { return reinterpret_cast<T*>(memory) + i % kStages * kTile<T>; };
  const auto fetch_tile = [&](int i) {
    fetch(arrived[i % kStages], staged(i), x, n, tile_of(i));
  };
  // The thread's p-th pack of a tile in which its first element is `first`.
  const auto pack_of = [&](int i, int64_t first, int p) {
    const int64_t left = n - first - p * kStep;
    if (left < kPack) return load(x + first + p * kStep, left, false);
    return *reinterpret_cast<const Pack<T>*>(staged(i) + own + p * kStep);
  };

  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(place(&arrived[i])) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int i = 0; i < kStages; ++i) fetch_tile(i);
  }
  __syncthreads();
  asm volatile("griddepcontrol.wait;" ::: "memory");  // for the workspace to be cleared

  // Publishes the sum of the block's i-th tile; `before` is what lies in it before each pack.
  const auto sum_tile = [&](int i, float& sum, float (&before)[kPacks]) {
    const int tile = tile_of(i);
    if (tile >= tiles) return;
    await(arrived[i % kStages], i / kStages);
    const int64_t first = (int64_t)tile * kTile<T> + own;
    float carry = 0.0f;  // the sum of the group's earlier packs
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const Pack<T> pack = pack_of(i, first, p);
      float v[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) v[j] = to_float(pack.v[j]);
#pragma unroll
      for (int half = kPack / 2; half > 0; half /= 2) {
#pragma unroll
        for (int j = 0; j < half; ++j) v[j] += v[j + half];
      }
      const float inclusive = lanes_scan(v[0], lane);
      const float left = __shfl_up(inclusive, 1, kGroup);
      before[p] = lane == 0 ? carry : carry + left;
      carry += __shfl(inclusive, kGroup - 1, kGroup);
    }
    if (lane == 0) group_sums[i % 2][group] = carry;
    __syncthreads();
    float offset = 0.0f;
    sum = 0.0f;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (g == group) offset = sum;
      sum += group_sums[i % 2][g];
    }
    if (threadIdx.x == 0) publish(state.sums + tile, sum);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) before[p] += offset;
  };

  float sum, next_sum, before[kPacks], next_before[kPacks];
  sum_tile(0, sum, before);
  for (int i = 0; tile_of(i) < tiles; ++i) {
    const int tile = tile_of(i);
    sum_tile(i + 1, next_sum, next_before);
    // If there was a next one, then all have written the tile before this one.
    if (threadIdx.x == 0 && i > 0 && tile_of(i + 1) < tiles) fetch_tile(i - 1 + kStages);
    const float start = sum_before(state, tile, window_sums[i % 2]);
    if (threadIdx.x == 0 && tile % kWindow == kWindow - 1) {
      publish(state.totals + tile / kWindow + 1, start + sum);
    }
    const int64_t first = (int64_t)tile * kTile<T> + own;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      Pack<T> pack = pack_of(i, first, p);
      float v[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) v[j] = to_float(pack.v[j]);
#pragma unroll
      for (int j = 1; j < kPack; ++j) v[j] += v[j - 1];
#pragma unroll
      for (int j = 0; j < kPack; ++j) pack.v[j] = from_float<T>(v[j] + (start + before[p]));
      store(y + first + p * kStep, pack, n - first - p * kStep, true);
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) before[p] = next_before[p];
    sum = next_sum;
  }
}

// The kernel launched next may start at once: it waits before it needs the words.
__global__ void clear(unsigned long long* words, int count) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) words[i] = 0;
}

template <class T>
hipError_t scan(const T* x, T* y, int64_t n, void* workspace, hipStream_t stream) {
  const int tiles = (int)((n + kTile<T> - 1) / kTile<T>), words = (int)words_of(tiles, kWindow);
  const State state = state_in(workspace, tiles);
  const auto kernel = scan_tiles<T>;
  const auto limit = hipFuncAttributeMaxDynamicSharedMemorySize;
  constexpr int kShared = kStages * kTileBytes;
  int device = 0, processors = 0, blocks = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  (void)hipFuncSetAttribute((const void*)kernel, limit, kShared);
  (void)hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kThreads, kShared);
  const int most = processors * blocks, clearing = (words + kThreads - 1) / kThreads;

  clear<<<dim3(clearing), dim3(kThreads), 0, stream>>>(state.tickets, words);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(tiles < most ? tiles : most);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kShared;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, x, y, state, n, tiles);
}

}  // namespace resident
#endif

template <class T> int64_t tile_count(int64_t n) { return (n + kTile<T> - 1) / kTile<T>; }

template <class T> size_t workspace_bytes(int64_t n) {
  return words_of(tile_count<T>(n), kWindow) * sizeof(unsigned long long);
}

template <class T>
hipError_t scan(const T* x, T* y, int64_t n, void* workspace, hipStream_t stream) {
  const bool aligned = (uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0;
#ifdef RESIDENT_BLOCKS
  if (aligned) return resident::scan(x, y, n, workspace, stream);
#endif
  const int64_t tiles = tile_count<T>(n);
  const State state = state_in(workspace, tiles);
  const hipError_t cleared = hipMemsetAsync(workspace, 0, workspace_bytes<T>(n), stream);
  if (cleared != hipSuccess) return cleared;
  const auto kernel = aligned ? scan_tiles<T, true> : scan_tiles<T, false>;
  kernel<<<dim3((unsigned)tiles), dim3(kThreads), 0, stream>>>(x, y, state, n);
  return hipGetLastError();
}

}  // namespace

extern "C" size_t scan_f32_workspace(int64_t n) { return workspace_bytes<float>(n); }

extern "C" size_t scan_f16_workspace(int64_t n) { return workspace_bytes<__half>(n); }

extern "C" hipError_t scan_f32(const float* x, float* y, int64_t n, void* workspace,
                               hipStream_t stream) {
  return scan(x, y, n, workspace, stream);
}

extern "C" hipError_t scan_f16(const __half* x, __half* y, int64_t n, void* workspace,
                               hipStream_t stream) {
  return scan(x, y, n, workspace, stream);
}
