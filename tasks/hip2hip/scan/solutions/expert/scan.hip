// Inclusive scan in one pass: every element is read once and written once.
//
// A block takes the next tile by ticket, scans it in registers with 32-lane shuffles,
// and publishes the tile's sum. It then waits for what lies before it: the sums of the
// earlier tiles of its window, and the total before the window, which the last tile of
// the window before has published. Only tiles that started earlier are waited for, so
// the wait ends whatever the number of blocks in flight. Unlike the usual decoupled
// look-back, which adds whatever happens to be ready, the terms and their order are
// fixed: the result is bitwise reproducible, and the chain of dependent steps is one
// step per window of 256 tiles.
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

// Workspace, zeroed before the kernel: a counter, then two arrays of mailboxes.
struct State {
  unsigned long long* tickets;
  unsigned long long* sums;     // [tiles]: the sum of each tile
  unsigned long long* totals;   // [windows]: the sum of everything before each window
};

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
__device__ float sum_before(const State& state, int64_t tile, float* scratch) {
  const int64_t window = tile / kWindow;
  const int64_t neighbour = window * kWindow + threadIdx.x;
  float value = 0.0f;
  if (neighbour < tile) {
    value = await(state.sums + neighbour);
  } else if (threadIdx.x == kWindow - 1 && window > 0) {
    value = await(state.totals + window);
  }
  scratch[threadIdx.x] = value;
  __syncthreads();
  float before = 0.0f;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) before += scratch[g * kGroup + threadIdx.x % kGroup];
  return lanes_sum(before);
}

template <class T, bool kAligned>
__global__ __launch_bounds__(kThreads, 5) void scan_tiles(const T* __restrict__ x,
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
    const int64_t start = start_of(p);
    if (kAligned && start + kPack <= n) {
      const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(x + start);
#pragma unroll
      for (int i = 0; i < kPack; ++i) v[p][i] = to_float(pack.v[i]);
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i) v[p][i] = start + i < n ? to_float(x[start + i]) : 0.0f;
    }
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
    const int64_t start = start_of(p);
    if (kAligned && start + kPack <= n) {
      Pack<T> pack;
#pragma unroll
      for (int i = 0; i < kPack; ++i) pack.v[i] = from_float<T>(v[p][i] + offset);
      *reinterpret_cast<Pack<T>*>(y + start) = pack;
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        if (start + i < n) y[start + i] = from_float<T>(v[p][i] + offset);
      }
    }
  }
}

template <class T> int64_t tile_count(int64_t n) { return (n + kTile<T> - 1) / kTile<T>; }

template <class T> size_t workspace_bytes(int64_t n) {
  const int64_t tiles = tile_count<T>(n);
  return (1 + tiles + tiles / kWindow + 1) * sizeof(unsigned long long);
}

template <class T>
hipError_t scan(const T* x, T* y, int64_t n, void* workspace, hipStream_t stream) {
  const int64_t tiles = tile_count<T>(n);
  const hipError_t cleared = hipMemsetAsync(workspace, 0, workspace_bytes<T>(n), stream);
  if (cleared != hipSuccess) return cleared;
  auto* words = static_cast<unsigned long long*>(workspace);
  const State state{words, words + 1, words + 1 + tiles};
  const dim3 grid((unsigned)tiles);
  if ((uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0) {
    scan_tiles<T, true><<<grid, dim3(kThreads), 0, stream>>>(x, y, state, n);
  } else {
    scan_tiles<T, false><<<grid, dim3(kThreads), 0, stream>>>(x, y, state, n);
  }
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
