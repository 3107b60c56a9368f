// Row-wise top-k that reads a row from memory once, by thresholds; no sort, no histogram.
//
// Elements are compared by the order-preserving bits of their values, and as 64-bit keys, with
// the complement of the column below the bits: keys are distinct, and among equal elements the
// first wins, in every run. A block reads a row, and each thread remembers the largest value of
// each sixteenth of what it reads. The k-th largest of the maxima of pairs of threads is a
// threshold that at least k elements reach and, for unordered data, few more. Only the pieces
// whose maxima reach it are looked at again; what reaches it is gathered in shared memory and
// finds its place by counting the larger ones. Where too many elements reach it (equal ones, rows
// in order), the k-th key is found by halving, which is slow, and rare.
//
// Where rows are few, a row is shared by several blocks; a second kernel merges the keys that
// they leave in the workspace. Short rows with a small k, as in the routing of experts, take 32
// lanes each, which find one element a round.
//
// Rows are read in 16-byte packs that lie on 16-byte boundaries whatever the alignment of the
// row; only the packs at its ends go element by element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

using Key = unsigned long long;            // 0 is less than the key of any element

constexpr int kMaxK = 64;
constexpr int kReaders = 256;              // threads of a segment
constexpr unsigned kPairs = kReaders / 2;  // at least kMaxK
constexpr int kPieces = 16;                // of a thread, each with a maximum
constexpr int kAtOnce = 8;                 // packs that a thread asks for before it looks
constexpr int kMostCandidates = 1024;      // more than packs too few for a threshold have
constexpr int kMostPacks = 512;            // to look at again
constexpr int kSegment = 8192;             // at least so many elements
constexpr int kEnoughBlocks = 512;         // to keep a device busy
constexpr int kMostSegments = 8;           // of a row
constexpr int kMostKeys = kMostSegments * kMaxK;

constexpr int kGroup = 32;                 // lanes of a short row
constexpr int kGroupsPerBlock = 8;
constexpr int kShortItems = 8;
constexpr int kShortRow = kGroup * kShortItems;
constexpr int kSmallK = 16;                // above this, rounds cost more than a block

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

// 16 bytes of T, moved as `bits`: a compiler may cut a copy of the elements into pieces.
template <class T> union Pack {
  static constexpr int kSize = 16 / sizeof(T);
  uint4 bits;
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

// How many elements lie between the last 16-byte boundary and `row`.
template <class T> __device__ int lead_of(const T* row) {
  return (int)((uintptr_t)row % 16 / sizeof(T));
}

__device__ Key lanes_max(Key key) {
#pragma unroll
  for (int distance = kGroup / 2; distance > 0; distance /= 2) {
    const Key other = __shfl_xor(key, distance, kGroup);
    key = other > key ? other : key;
  }
  return key;
}

// One row of at most kShortRow elements for every 32 lanes; k <= kSmallK.
template <class T>
__global__ __launch_bounds__(kGroup* kGroupsPerBlock) void topk_short_rows(
    const T* __restrict__ x, T* __restrict__ values, int64_t* __restrict__ indices, int64_t rows,
    int cols, int k) {
  const int lane = threadIdx.x % kGroup;
  const int64_t row = (int64_t)blockIdx.x * kGroupsPerBlock + threadIdx.x / kGroup;
  if (row >= rows) return;
  const T* in = x + row * cols;
  Key keys[kShortItems];
#pragma unroll
  for (int i = 0; i < kShortItems; ++i) {
    const int col = i * kGroup + lane;
    keys[i] = col < cols ? make_key(ordered_bits(to_float(in[col])), col) : 0;
  }
  const auto largest = [&] {
    Key best = 0;
#pragma unroll
    for (int i = 0; i < kShortItems; ++i) best = keys[i] > best ? keys[i] : best;
    return best;
  };

  Key best = largest(), own = 0;  // lane i keeps the i-th result
  for (int place = 0; place < k; ++place) {
    const Key winner = lanes_max(best);
    if (lane == place) own = winner;
    if (best != winner) continue;
#pragma unroll
    for (int i = 0; i < kShortItems; ++i) keys[i] = keys[i] == winner ? 0 : keys[i];
    best = largest();
  }
  if (lane < k) {
    values[row * k + lane] = in[column_of(own)];
    indices[row * k + lane] = column_of(own);
  }
}

// A segment of a row as packs of 16 bytes that lie on 16-byte boundaries.
template <class T> struct Segment {
  static constexpr int kPack = Pack<T>::kSize;
  const T* row;
  int base, end;  // columns; the base may be negative

  __device__ int packs() const { return (end - base + kPack - 1) / kPack; }
  __device__ bool whole(int pack) const {
    const int col = base + pack * kPack;
    return col >= 0 && col <= end - kPack;
  }
  __device__ uint4 bits(int pack) const {
    return *reinterpret_cast<const uint4*>(row + base + pack * kPack);
  }

  // Calls each(ordered bits, column) for the pack's elements inside the segment.
  template <class Each> __device__ void visit(int pack, Each each) const {
    const int col = base + pack * kPack;
    if (whole(pack)) {
      const Pack<T> loaded{bits(pack)};
#pragma unroll
      for (int i = 0; i < kPack; ++i) each(ordered_bits(to_float(loaded.v[i])), col + i);
    } else {
      for (int i = 0; i < kPack; ++i) {
        if (col + i >= 0 && col + i < end) each(ordered_bits(to_float(row[col + i])), col + i);
      }
    }
  }
};

// What a thread remembers of its packs: the largest element of each piece, which is every
// kReaders-th of `stride` rounds of packs.
struct Pieces {
  unsigned largest[kPieces] = {};
  int stride;

  template <class T> __device__ explicit Pieces(const Segment<T>& segment) {
    const int packs = segment.packs();
    stride = (packs + kReaders * kPieces - 1) / (kReaders * kPieces);
    for (int round = 0; round < stride; ++round) {
#pragma unroll
      for (int first = 0; first < kPieces; first += kAtOnce) {
        Pack<T> loaded[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int pack = pack_of(first + i, round);
          if (pack < packs && segment.whole(pack)) loaded[i].bits = segment.bits(pack);
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int pack = pack_of(first + i, round);
          unsigned& most = largest[first + i];
          if (pack < packs && segment.whole(pack)) {
#pragma unroll
            for (int j = 0; j < Pack<T>::kSize; ++j) {
              most = max(most, ordered_bits(to_float(loaded[i].v[j])));
            }
          } else if (pack < packs) {
            segment.visit(pack, [&](unsigned ordered, int) { most = max(most, ordered); });
          }
        }
      }
    }
  }

  __device__ int pack_of(int piece, int round) const {
    return (piece * stride + round) * kReaders + (int)threadIdx.x;
  }

  __device__ unsigned most() const {
    unsigned result = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) result = max(result, largest[i]);
    return result;
  }

  // Calls each(pack) for the packs of pieces with an element whose bits are at least `least`.
  template <class T, class Each>
  __device__ void visit(const Segment<T>& segment, unsigned least, Each each) const {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (largest[piece] < least) continue;
      for (int round = 0; round < stride; ++round) {
        const int pack = pack_of(piece, round);
        if (pack < segment.packs()) each(pack);
      }
    }
  }
};

struct Chosen {
  alignas(16) unsigned maxima[kPairs];
  Key candidates[kMostCandidates];
  int packs[kMostPacks];
  unsigned threshold;
  int count, pack_count;
};

// Gathers the keys that are at least `least`, as many as there is room for; how many there are.
// The packs to look at again are listed first, so that all of them are on their way together.
template <class T>
__device__ int gather(Chosen& chosen, const Pieces& pieces, const Segment<T>& segment, Key least) {
  __syncthreads();
  if (threadIdx.x == 0) chosen.count = chosen.pack_count = 0;
  __syncthreads();
  pieces.visit(segment, (unsigned)(least >> 32), [&](int pack) {
    const int place = atomicAdd(&chosen.pack_count, 1);
    if (place < kMostPacks) chosen.packs[place] = pack;
  });
  __syncthreads();
  const bool listed = chosen.pack_count <= kMostPacks;
  const int packs = listed ? chosen.pack_count : segment.packs();
  for (int i = threadIdx.x; i < packs; i += kReaders) {
    segment.visit(listed ? chosen.packs[i] : i, [&](unsigned ordered, int column) {
      const Key key = make_key(ordered, (unsigned)column);
      if (key < least) return;
      const int place = atomicAdd(&chosen.count, 1);
      if (place < kMostCandidates) chosen.candidates[place] = key;
    });
  }
  __syncthreads();
  return chosen.count;
}

// A value that at least k elements reach, where there are so many, and for unordered data few
// more: the k-th largest of the pairs' own. The members of a pair share the counting.
__device__ unsigned threshold_of(Chosen& chosen, unsigned own, int k) {
  const int pair = threadIdx.x / 2, member = threadIdx.x % 2;
  own = max(own, __shfl_xor(own, 1, 2));
  // Made different by their last bits: the value is a little less then, which is as good.
  own = own > kPairs ? (own & ~(kPairs - 1)) | pair : 0;
  if (member == 0) chosen.maxima[pair] = own;
  if (threadIdx.x == 0) chosen.threshold = 1;  // no element has less
  __syncthreads();
  int larger = 0;
#pragma unroll 4
  for (int i = member * 4; i < (int)kPairs; i += 8) {
    const uint4 four = *reinterpret_cast<const uint4*>(chosen.maxima + i);
    larger += (four.x > own) + (four.y > own) + (four.z > own) + (four.w > own);
  }
  larger += __shfl_xor(larger, 1, 2);
  if (member == 0 && larger == k - 1 && own > 0) chosen.threshold = own & ~(kPairs - 1);
  __syncthreads();
  return chosen.threshold;
}

// blockIdx.x: the segments of all rows, one after the other, of `length` elements. With one
// segment a row the results go to values and indices, else the segment's keys to `keys`
// [rows, segments, k]: segments of longer rows hold at least k elements.
template <class T>
__global__ __launch_bounds__(kReaders, 4) void topk_segments(const T* __restrict__ x,
                                                             T* __restrict__ values,
                                                             int64_t* __restrict__ indices,
                                                             Key* __restrict__ keys, int segments,
                                                             int length, int cols, int k) {
  __shared__ Chosen chosen;
  const int64_t row = blockIdx.x / segments;
  const T* in = x + row * cols;
  const int base = (int)(blockIdx.x % segments) * length - lead_of(in);
  const Segment<T> segment{in, base, base + length < cols ? base + length : cols};
  const Pieces pieces(segment);
  const unsigned threshold = threshold_of(chosen, pieces.most(), k);
  int count = gather(chosen, pieces, segment, (Key)threshold << 32);
  if (count > kMostCandidates) {  // many equal or ordered elements: find the k-th key by halving
    Key least = (Key)threshold << 32, above = ~(Key)0;
    while (above - least > 1) {
      const Key middle = least + (above - least) / 2;
      count = gather(chosen, pieces, segment, middle);
      (count >= k ? least : above) = middle;
      if (count >= k && count <= kMostCandidates) break;
    }
    count = gather(chosen, pieces, segment, least);
  }
  for (int i = threadIdx.x; i < count; i += kReaders) {
    const Key own = chosen.candidates[i];
    int place = 0;
#pragma unroll 8
    for (int j = 0; j < count; ++j) place += chosen.candidates[j] > own ? 1 : 0;
    if (place >= k) continue;
    if (segments > 1) {
      keys[(int64_t)blockIdx.x * k + place] = own;
    } else {
      values[row * k + place] = in[column_of(own)];
      indices[row * k + place] = column_of(own);
    }
  }
}

// One block a row: the k largest of the segments' keys, which descend in each segment. Each key
// finds its place by halving.
template <class T>
__global__ __launch_bounds__(kMostKeys) void merge_segments(const T* __restrict__ x,
                                                            const Key* __restrict__ keys,
                                                            T* __restrict__ values,
                                                            int64_t* __restrict__ indices,
                                                            int segments, int64_t cols, int k) {
  __shared__ Key all[kMostKeys];
  const int64_t row = blockIdx.x;
  const int i = threadIdx.x, count = segments * k;
  const Key own = i < count ? keys[row * count + i] : 0;
  all[i] = own;
  __syncthreads();
  if (i >= count) return;
  int place = 0;
  for (int first = 0; first < count; first += k) {
    int low = 0, high = k;
    while (low < high) {
      const int middle = (low + high) / 2;
      const bool larger = all[first + middle] > own;
      (larger ? low : high) = larger ? middle + 1 : middle;
    }
    place += low;
  }
  if (place >= k) return;
  values[row * k + place] = x[row * cols + column_of(own)];
  indices[row * k + place] = column_of(own);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Parts of a row: more where there are few rows.
int64_t segment_count(int64_t rows, int64_t span) {
  const int64_t wanted = ceil_div(kEnoughBlocks, rows), most = ceil_div(span, kSegment);
  const int64_t some = wanted < most ? wanted : most;
  return some < kMostSegments ? some : kMostSegments;
}

// Whatever the alignment of the rows, which is not known here.
template <class T> size_t workspace_bytes(int64_t rows, int64_t cols, int64_t k) {
  const int64_t segments = segment_count(rows, cols + Pack<T>::kSize - 1);
  return segments > 1 ? rows * segments * k * sizeof(Key) : 0;
}

template <class T>
hipError_t topk(const T* x, T* values, int64_t* indices, int64_t rows, int64_t cols, int64_t k,
                void* workspace, hipStream_t stream) {
  constexpr int kPack = Pack<T>::kSize;
  const bool aligned = (uintptr_t)x % 16 == 0 && cols % kPack == 0;
  const int64_t span = aligned ? cols : cols + kPack - 1;  // with the widest lead
  if (cols <= kShortRow && k <= kSmallK) {
    const int64_t blocks = ceil_div(rows, kGroupsPerBlock);
    topk_short_rows<T><<<dim3((unsigned)blocks), dim3(kGroup * kGroupsPerBlock), 0, stream>>>(
        x, values, indices, rows, (int)cols, (int)k);
    return hipGetLastError();
  }
  Key* keys = static_cast<Key*>(workspace);
  const int segments = (int)segment_count(rows, span);
  const int length = (int)ceil_div(ceil_div(span, segments), kPack) * kPack;
  topk_segments<T><<<dim3((unsigned)(rows * segments)), dim3(kReaders), 0, stream>>>(
      x, values, indices, keys, segments, length, (int)cols, (int)k);
  if (segments > 1) {
    merge_segments<T><<<dim3((unsigned)rows), dim3(kMostKeys), 0, stream>>>(
        x, keys, values, indices, segments, cols, (int)k);
  }
  return hipGetLastError();
}

}  // namespace

#define ENTRIES(NAME, T)                                                                         \
  extern "C" size_t NAME##_workspace(int64_t rows, int64_t cols, int64_t k) {                    \
    return workspace_bytes<T>(rows, cols, k);                                                    \
  }                                                                                              \
  extern "C" hipError_t NAME(const T* x, T* values, int64_t* indices, int64_t rows,              \
                             int64_t cols, int64_t k, void* workspace, hipStream_t stream) {     \
    return topk(x, values, indices, rows, cols, k, workspace, stream);                           \
  }

ENTRIES(topk_f32, float)
ENTRIES(topk_f16, __half)
ENTRIES(topk_bf16, __hip_bfloat16)
