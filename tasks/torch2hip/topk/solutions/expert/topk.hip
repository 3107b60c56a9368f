// Row-wise top-k in one pass over memory, by thresholds; no sort, no histogram.
//
// A block holds a segment of a row in registers. Elements become 64-bit keys, the value
// in order-preserving bits above the complement of the column: keys are distinct, and
// among equal elements the first wins, in every run. Each team of two threads takes its
// largest key; the k-th largest of the 128 maxima is a threshold that at least k elements
// reach and, for unordered data, few more. At most k teams have elements that reach it,
// which bounds the candidates whatever the data. Candidates are gathered in shared memory
// and each finds its place by counting the larger ones.
//
// A row longer than a segment is shared by several blocks; a second kernel selects from
// the keys that they leave in the workspace.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

using Key = unsigned long long;            // 0 is less than the key of any element

constexpr int kThreads = 256;
constexpr int kTeam = 2;                   // threads that share a maximum
constexpr int kTeams = kThreads / kTeam;   // at least kMaxK
constexpr int kMaxK = 64;
constexpr int kShortItems = 8;             // elements of a thread, in short rows
constexpr int kLongItems = 32;             // and in segments of long ones
constexpr int64_t kSegment = (int64_t)kThreads * kLongItems;
constexpr int kMergeItems = 8;             // keys of a thread in the second kernel

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T, int kSize> struct alignas(kSize * sizeof(T)) Pack {
  T v[kSize];
};

// The value's bits as an unsigned number of the same order: -inf is least but above 0,
// NaN is largest.
__device__ unsigned ordered_bits(float v) {
  const unsigned bits = __float_as_uint(v);
  const unsigned ordered = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
  return v != v ? 0xffffffffu : ordered;
}

__device__ Key make_key(unsigned ordered, unsigned column) {
  return ((Key)ordered << 32) | (unsigned)~column;
}

__device__ unsigned column_of(Key key) { return ~(unsigned)key; }

template <int kItems> struct Scratch {
  Key maxima[kTeams];
  Key candidates[kMaxK * kTeam * kItems];
  Key threshold;
  int count;
};

// Calls emit(place, key) for the k largest of the block's keys, or for all where there are
// fewer. `best` is the largest of the thread's keys, reaches(i, least) says whether item i
// may have a key of at least `least`, and key(i) is its key or 0.
template <int kItems, class Reaches, class KeyOf, class Emit>
__device__ void select_largest(Key best, int k, Scratch<kItems>& scratch, Reaches reaches,
                               KeyOf key, Emit emit) {
  const int team = threadIdx.x / kTeam, member = threadIdx.x % kTeam;
  const Key partner = __shfl_xor(best, 1, kTeam);
  best = partner > best ? partner : best;
  if (member == 0) scratch.maxima[team] = best;
  if (threadIdx.x == 0) {
    scratch.threshold = 0;
    scratch.count = 0;
  }
  __syncthreads();

  int larger = 0;  // maxima above the team's own; each member counts half of them
#pragma unroll 8
  for (int i = member; i < kTeams; i += kTeam) larger += scratch.maxima[i] > best ? 1 : 0;
  larger += __shfl_xor(larger, 1, kTeam);
  if (member == 0 && larger == k - 1 && best != 0) scratch.threshold = best;
  __syncthreads();

  const Key threshold = scratch.threshold;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (!reaches(i, threshold)) continue;
    const Key own = key(i);
    if (own != 0 && own >= threshold) scratch.candidates[atomicAdd(&scratch.count, 1)] = own;
  }
  __syncthreads();

  const int count = scratch.count;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const Key own = scratch.candidates[i];
    int place = 0;
    for (int j = 0; j < count; ++j) place += scratch.candidates[j] > own ? 1 : 0;
    if (place < k) emit(place, own);
  }
}

// blockIdx.x: the segments of all rows, one after the other. With one segment a row the
// results go to values and indices, else the segment's keys to `keys` [rows, segments, k],
// whose unused places are 0.
template <class T, int kItems, int kPack>
__global__ __launch_bounds__(kThreads) void topk_segments(const T* __restrict__ x,
                                                          T* __restrict__ values,
                                                          int64_t* __restrict__ indices,
                                                          Key* __restrict__ keys, int segments,
                                                          int cols, int k) {
  using Unit = Pack<T, kPack>;
  __shared__ Scratch<kItems> scratch;
  const int64_t row = blockIdx.x / segments;
  const int first = (int)(blockIdx.x % segments) * kThreads * kItems;
  const T* in = x + row * cols;
  const auto column = [=](int i) {
    return first + (i / kPack * kThreads + (int)threadIdx.x) * kPack + i % kPack;
  };

  unsigned ordered[kItems];
  unsigned best = 0, best_column = 0;
#pragma unroll
  for (int i = 0; i < kItems; i += kPack) {
    const bool inside = column(i) < cols;
    Unit unit;
    if (inside) unit = *reinterpret_cast<const Unit*>(in + column(i));
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      ordered[i + j] = inside ? ordered_bits(to_float(unit.v[j])) : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {  // columns ascend with i: the first of equals is kept
    if (ordered[i] > best) {
      best = ordered[i];
      best_column = column(i);
    }
  }

  if (segments > 1) {
    keys += (int64_t)blockIdx.x * k;
    // Only the last segment of a row can hold fewer than k elements.
    if (cols - first < k && (int)threadIdx.x < k) keys[threadIdx.x] = 0;
    __syncthreads();
  }
  select_largest<kItems>(
      best == 0 ? 0 : make_key(best, best_column), k, scratch,
      [&](int i, Key least) { return ordered[i] >= (unsigned)(least >> 32); },
      [&](int i) { return ordered[i] == 0 ? 0 : make_key(ordered[i], column(i)); },
      [&](int place, Key key) {
        if (segments > 1) {
          keys[place] = key;
        } else {
          values[row * k + place] = in[column_of(key)];
          indices[row * k + place] = column_of(key);
        }
      });
}

// One block a row: the k largest of the segments' keys.
template <class T>
__global__ __launch_bounds__(kThreads) void merge_segments(const T* __restrict__ x,
                                                           const Key* __restrict__ keys,
                                                           T* __restrict__ values,
                                                           int64_t* __restrict__ indices,
                                                           int segments, int64_t cols, int k) {
  __shared__ Scratch<kMergeItems> scratch;
  const int64_t row = blockIdx.x;
  const Key* in = keys + row * segments * k;
  Key own[kMergeItems];
  Key best = 0;
#pragma unroll
  for (int i = 0; i < kMergeItems; ++i) {
    const int place = i * kThreads + threadIdx.x;
    own[i] = place < segments * k ? in[place] : 0;
    best = own[i] > best ? own[i] : best;
  }
  select_largest<kMergeItems>(
      best, k, scratch, [&](int i, Key least) { return own[i] >= least; },
      [&](int i) { return own[i]; },
      [&](int place, Key key) {
        values[row * k + place] = x[row * cols + column_of(key)];
        indices[row * k + place] = column_of(key);
      });
}

int64_t segment_count(int64_t cols) {
  return cols <= kThreads * kShortItems ? 1 : (cols + kSegment - 1) / kSegment;
}

size_t workspace_bytes(int64_t rows, int64_t cols, int64_t k) {
  const int64_t segments = segment_count(cols);
  return segments > 1 ? rows * segments * k * sizeof(Key) : 0;
}

template <class T, int kPack>
void launch(const T* x, T* values, int64_t* indices, int64_t rows, int cols, int k, Key* keys,
            hipStream_t stream) {
  const int segments = (int)segment_count(cols);
  const dim3 grid((unsigned)(rows * segments));
  if (cols <= kThreads * kShortItems) {
    topk_segments<T, kShortItems, kPack>
        <<<grid, dim3(kThreads), 0, stream>>>(x, values, indices, keys, segments, cols, k);
  } else {
    topk_segments<T, kLongItems, kPack>
        <<<grid, dim3(kThreads), 0, stream>>>(x, values, indices, keys, segments, cols, k);
  }
}

template <class T>
hipError_t topk(const T* x, T* values, int64_t* indices, int64_t rows, int64_t cols, int64_t k,
                void* workspace, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  Key* keys = static_cast<Key*>(workspace);
  if (cols % kPack == 0 && (uintptr_t)x % 16 == 0) {
    launch<T, kPack>(x, values, indices, rows, (int)cols, (int)k, keys, stream);
  } else {
    launch<T, 1>(x, values, indices, rows, (int)cols, (int)k, keys, stream);
  }
  const int64_t segments = segment_count(cols);
  if (segments > 1) {
    merge_segments<T><<<dim3((unsigned)rows), dim3(kThreads), 0, stream>>>(
        x, keys, values, indices, (int)segments, cols, (int)k);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" size_t topk_f32_workspace(int64_t rows, int64_t cols, int64_t k) {
  return workspace_bytes(rows, cols, k);
}

extern "C" size_t topk_f16_workspace(int64_t rows, int64_t cols, int64_t k) {
  return workspace_bytes(rows, cols, k);
}

extern "C" size_t topk_bf16_workspace(int64_t rows, int64_t cols, int64_t k) {
  return workspace_bytes(rows, cols, k);
}

extern "C" hipError_t topk_f32(const float* x, float* values, int64_t* indices, int64_t rows,
                               int64_t cols, int64_t k, void* workspace, hipStream_t stream) {
  return topk(x, values, indices, rows, cols, k, workspace, stream);
}

extern "C" hipError_t topk_f16(const __half* x, __half* values, int64_t* indices, int64_t rows,
                               int64_t cols, int64_t k, void* workspace, hipStream_t stream) {
  return topk(x, values, indices, rows, cols, k, workspace, stream);
}

extern "C" hipError_t topk_bf16(const __hip_bfloat16* x, __hip_bfloat16* values,
                                int64_t* indices, int64_t rows, int64_t cols, int64_t k,
                                void* workspace, hipStream_t stream) {
  return topk(x, values, indices, rows, cols, k, workspace, stream);
}
