// Row-wise top-k in one pass over memory, by thresholds; no sort, no histogram.
//
// A block holds a segment of a row in registers. Elements become 64-bit keys, the value
// in order-preserving bits above the complement of the column: keys are distinct, and
// among equal elements the first wins, in every run. Each team of four threads takes its
// largest key; the k-th largest of the 128 maxima is a threshold that at least k elements
// reach and, for unordered data, few more. At most k teams have elements that reach it,
// which bounds the candidates whatever the data. Candidates are gathered in shared memory
// and each finds its place by counting the larger ones.
//
// A row longer than a segment is shared by several blocks; a second kernel selects from
// the keys that they leave in the workspace. Short rows with a small k, as in the routing
// of experts, take 32 lanes each, which find one element a round.
//
// Rows are read in 16-byte packs that lie on 16-byte boundaries whatever the alignment of
// the row; only the packs at its ends go element by element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

using Key = unsigned long long;            // 0 is less than the key of any element

constexpr int kThreads = 512;
constexpr int kTeam = 4;                   // threads that share a maximum
constexpr int kTeams = kThreads / kTeam;   // at least kMaxK
constexpr int kMaxK = 64;
constexpr int kItems = 16;                 // elements of a thread
constexpr int kSegment = kThreads * kItems;  // at most so many elements, at least half of it
constexpr int kMergeItems = 5;             // keys of a thread in the second kernel
constexpr int kMostSegments = kThreads * kMergeItems / kMaxK;

constexpr int kGroup = 32;                 // lanes of a short row
constexpr int kGroupsPerBlock = 8;
constexpr int kShortItems = 8;
constexpr int kShortRow = kGroup * kShortItems;
constexpr int kSmallK = 16;                // above this, rounds cost more than a block

static_assert(kTeams >= kMaxK, "the k-th largest maximum must exist");

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

// 16 bytes of T, moved by one instruction.
template <class T> struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
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

// kItems elements of a row for each of kLanes lanes, as ordered bits, 0 outside the columns
// from 0 to `end`. `base` is the column of the slice's first element; it lies on a 16-byte
// boundary and may be negative.
template <class T, int kLanes, int kItems> struct Slice {
  static constexpr int kPack = Pack<T>::kSize;
  unsigned ordered[kItems];
  int base, lane;

  __device__ int column(int item) const {
    return base + (item / kPack * kLanes + lane) * kPack + item % kPack;
  }

  // All packs are requested before the first is looked at: a branch would wait for it.
  __device__ Slice(const T* row, int base, int end, int lane) : base(base), lane(lane) {
    Pack<T> packs[kItems / kPack];
#pragma unroll
    for (int i = 0; i < kItems; i += kPack) {
      const int col = column(i);
      if (col >= 0 && col <= end - kPack) {
        packs[i / kPack] = *reinterpret_cast<const Pack<T>*>(row + col);
      }
    }
#pragma unroll
    for (int i = 0; i < kItems; i += kPack) {
      const int col = column(i);
      const bool whole = col >= 0 && col <= end - kPack;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        ordered[i + j] = whole ? ordered_bits(to_float(packs[i / kPack].v[j])) : 0;
      }
      if (whole || col <= -kPack || col >= end) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const bool inside = (unsigned)(col + j) < (unsigned)end;
        if (inside) ordered[i + j] = ordered_bits(to_float(row[col + j]));
      }
    }
  }

  __device__ Key key(int item) const {
    return ordered[item] == 0 ? 0 : make_key(ordered[item], column(item));
  }

  // The largest key. Columns ascend with the item, so the first of equals is kept.
  __device__ Key largest() const {
    unsigned best = 0;
    int column_of_best = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (ordered[i] > best) {
        best = ordered[i];
        column_of_best = column(i);
      }
    }
    return best == 0 ? 0 : make_key(best, column_of_best);
  }
};

// How many elements lie between the last 16-byte boundary and `row`.
template <class T> __device__ int lead_of(const T* row) {
  return (int)((uintptr_t)row % 16 / sizeof(T));
}

template <int kLanes> __device__ Key lanes_max(Key key) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    const Key other = __shfl_xor(key, distance, kLanes);
    key = other > key ? other : key;
  }
  return key;
}

// The place of the thread's packs in each round. Neighbouring packs go to different teams,
// so that few elements make many maxima.
__device__ int pack_of_thread() {
  return threadIdx.x % kTeam * kTeams + threadIdx.x / kTeam;
}

__device__ int team_sum(int v) {
#pragma unroll
  for (int distance = kTeam / 2; distance > 0; distance /= 2) {
    v += __shfl_xor(v, distance, kTeam);
  }
  return v;
}

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
  best = lanes_max<kTeam>(best);
  if (member == 0) scratch.maxima[team] = best;
  if (threadIdx.x == 0) {
    scratch.threshold = 0;
    scratch.count = 0;
  }
  __syncthreads();

  int larger = 0;  // maxima above the team's own; the members share the counting
#pragma unroll 8
  for (int i = member; i < kTeams; i += kTeam) larger += scratch.maxima[i] > best ? 1 : 0;
  larger = team_sum(larger);
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
  for (int i = team; i < count; i += kTeams) {
    const Key own = scratch.candidates[i];
    int place = 0;  // again, the members share the counting
#pragma unroll 8
    for (int j = member; j < count; j += kTeam) place += scratch.candidates[j] > own ? 1 : 0;
    place = team_sum(place);
    if (member == 0 && place < k) emit(place, own);
  }
}

// One row for every 32 lanes, of at most kShortRow elements with the lead; k <= kSmallK.
template <class T>
__global__ __launch_bounds__(kGroup* kGroupsPerBlock) void topk_short_rows(
    const T* __restrict__ x, T* __restrict__ values, int64_t* __restrict__ indices, int64_t rows,
    int cols, int k) {
  const int lane = threadIdx.x % kGroup;
  const int64_t row = (int64_t)blockIdx.x * kGroupsPerBlock + threadIdx.x / kGroup;
  if (row >= rows) return;
  const T* in = x + row * cols;
  Slice<T, kGroup, kShortItems> slice(in, -lead_of(in), cols, lane);

  Key best = slice.largest(), own = 0;  // lane i keeps the i-th result
  for (int place = 0; place < k; ++place) {
    const Key winner = lanes_max<kGroup>(best);
    if (lane == place) own = winner;
    if (best != winner) continue;
#pragma unroll
    for (int i = 0; i < kShortItems; ++i) {
      if (slice.column(i) == (int)column_of(winner)) slice.ordered[i] = 0;
    }
    best = slice.largest();
  }
  if (lane < k) {
    values[row * k + lane] = in[column_of(own)];
    indices[row * k + lane] = column_of(own);
  }
}

// blockIdx.x: the segments of all rows, one after the other, of `length` elements. With one
// segment a row the results go to values and indices, else the segment's keys to `keys`
// [rows, segments, k]: segments of longer rows hold at least k elements.
template <class T>
__global__ __launch_bounds__(kThreads) void topk_segments(const T* __restrict__ x,
                                                          T* __restrict__ values,
                                                          int64_t* __restrict__ indices,
                                                          Key* __restrict__ keys, int segments,
                                                          int length, int cols, int k) {
  __shared__ Scratch<kItems> scratch;
  const int64_t row = blockIdx.x / segments;
  const T* in = x + row * cols;
  const int base = (int)(blockIdx.x % segments) * length - lead_of(in);
  const int end = base + length < cols ? base + length : cols;
  const Slice<T, kThreads, kItems> slice(in, base, end, pack_of_thread());
  select_largest<kItems>(
      slice.largest(), k, scratch,
      [&](int i, Key least) { return slice.ordered[i] >= (unsigned)(least >> 32); },
      [&](int i) { return slice.key(i); },
      [&](int place, Key key) {
        if (segments > 1) {
          keys[(int64_t)blockIdx.x * k + place] = key;
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
    const int place = i * kThreads + pack_of_thread();
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

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t segment_count(int64_t span) { return ceil_div(span, kSegment); }

// Whatever the alignment of the rows, which is not known here.
template <class T> size_t workspace_bytes(int64_t rows, int64_t cols, int64_t k) {
  const int64_t segments = segment_count(cols + Pack<T>::kSize - 1);
  return segments > 1 ? rows * segments * k * sizeof(Key) : 0;
}

template <class T>
hipError_t topk(const T* x, T* values, int64_t* indices, int64_t rows, int64_t cols, int64_t k,
                void* workspace, hipStream_t stream) {
  constexpr int kPack = Pack<T>::kSize;
  const bool aligned = (uintptr_t)x % 16 == 0 && cols % kPack == 0;
  const int64_t span = aligned ? cols : cols + kPack - 1;  // with the widest lead
  if (span <= kShortRow && k <= kSmallK) {
    const int64_t blocks = ceil_div(rows, kGroupsPerBlock);
    topk_short_rows<T><<<dim3((unsigned)blocks), dim3(kGroup * kGroupsPerBlock), 0, stream>>>(
        x, values, indices, rows, (int)cols, (int)k);
    return hipGetLastError();
  }
  Key* keys = static_cast<Key*>(workspace);
  const int segments = (int)segment_count(span);
  if (segments > kMostSegments) return hipErrorInvalidValue;
  const int length = (int)ceil_div(ceil_div(span, segments), kPack) * kPack;
  topk_segments<T><<<dim3((unsigned)(rows * segments)), dim3(kThreads), 0, stream>>>(
      x, values, indices, keys, segments, length, (int)cols, (int)k);
  if (segments > 1) {
    merge_segments<T><<<dim3((unsigned)rows), dim3(kThreads), 0, stream>>>(
        x, keys, values, indices, segments, cols, (int)k);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" size_t topk_f32_workspace(int64_t rows, int64_t cols, int64_t k) {
  return workspace_bytes<float>(rows, cols, k);
}

extern "C" size_t topk_f16_workspace(int64_t rows, int64_t cols, int64_t k) {
  return workspace_bytes<__half>(rows, cols, k);
}

extern "C" size_t topk_bf16_workspace(int64_t rows, int64_t cols, int64_t k) {
  return workspace_bytes<__hip_bfloat16>(rows, cols, k);
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
