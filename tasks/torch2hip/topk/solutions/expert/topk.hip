// Row-wise top-k that reads a row from memory once, by thresholds; no sort, no histogram.
//
// Elements are compared by the order-preserving bits of their values, and as 64-bit keys, with
// the complement of the column below the bits: keys are distinct, and among equal elements the
// first wins, in every run. A block reads a row, and each thread remembers the largest value of
// each sixteenth of what it reads. The k-th largest of the maxima of pairs of threads is a
// threshold that at least k elements reach and, for unordered data, few more. Only the pieces
// whose maxima reach it are looked at again; what reaches it is gathered in shared memory and
// finds its place by counting the larger ones. Where many reach it, most of them are equal to it:
// then what is above it is gathered, and as many equals as are wanted are taken from the row's
// start. Should many be above, too, the k-th value is found by halving, which is slow, and rare.
//
// Where rows are few, several blocks share a row, and a second kernel merges the keys that they
// leave in the workspace. Short rows with a small k, as in the routing of experts, take 32 lanes
// each, which find one element a round. Rows are read in 16-byte packs that lie on 16-byte
// boundaries whatever the alignment of the row; only packs at its ends go element by element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

using Key = unsigned long long;            // 0 is less than the key of any element

constexpr int kReaders = 256;              // threads of a segment
constexpr int kPairs = kReaders / 2;       // at least kMaxK
constexpr int kPieces = 16;                // of a thread, each with a maximum
constexpr int kAtOnce = 8;                 // packs that a thread asks for before it looks
constexpr int kMostCandidates = 512;       // above this, counting costs more than another look
constexpr int kMostPacks = 512;            // to look at again
constexpr int kRun = 4;                    // packs that a lane looks through for equals at a time
constexpr int kSegment = 8192;             // at least so many elements
constexpr int kEnoughBlocks = 512;         // to keep a device busy
constexpr int kMostSegments = 8;           // of a row
constexpr int kMaxK = 64, kMostKeys = kMostSegments * kMaxK;

constexpr int kGroup = 32, kGroupsPerBlock = 8;  // lanes of a short row, and rows of a block
constexpr int kShortItems = 8, kShortRow = kGroup * kShortItems;
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

// What a call is about: x [rows, cols], values and indices [rows, k].
template <class T> struct Problem {
  const T* x;
  T* values;
  int64_t *indices, rows;
  int cols, k;

  __device__ void write(int64_t row, int place, Key key) const {
    values[row * k + place] = x[row * cols + column_of(key)];
    indices[row * k + place] = column_of(key);
  }
};

// How many elements lie between the last 16-byte boundary and `row`.
template <class T> __device__ int lead_of(const T* row) {
  return (int)((uintptr_t)row % 16 / sizeof(T));
}

__device__ Key lanes_max(Key key) {
#pragma unroll
  for (int distance = kGroup / 2; distance > 0; distance /= 2) {
    key = max(key, __shfl_xor(key, distance, kGroup));
  }
  return key;
}

// One row of at most kShortRow elements for every 32 lanes; k <= kSmallK.
template <class T>
__global__ __launch_bounds__(kGroup* kGroupsPerBlock) void topk_short_rows(Problem<T> a) {
  const int lane = threadIdx.x % kGroup;
  const int64_t row = (int64_t)blockIdx.x * kGroupsPerBlock + threadIdx.x / kGroup;
  if (row >= a.rows) return;
  const T* in = a.x + row * a.cols;
  Key keys[kShortItems];
#pragma unroll
  for (int i = 0; i < kShortItems; ++i) {
    const int col = i * kGroup + lane;
    keys[i] = col < a.cols ? make_key(ordered_bits(to_float(in[col])), col) : 0;
  }
  const auto largest = [&] {
    Key best = 0;
#pragma unroll
    for (const Key key : keys) best = max(best, key);
    return best;
  };

  Key best = largest(), own = 0;  // lane i keeps the i-th result
  for (int place = 0; place < a.k; ++place) {
    const Key winner = lanes_max(best);
    if (lane == place) own = winner;
    if (best != winner) continue;
#pragma unroll
    for (Key& key : keys) key = key == winner ? 0 : key;
    best = largest();
  }
  if (lane < a.k) a.write(row, lane, own);
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
      for (int c = max(col, 0); c < min(col + kPack, end); ++c) {
        each(ordered_bits(to_float(row[c])), c);
      }
    }
  }
};

// What a thread remembers of its packs: the largest of all elements, and of each piece, which is
// every kReaders-th pack of `stride` rounds. The members of a pair read far from each other.
struct Pieces {
  unsigned largest[kPieces] = {}, most = 0;
  int reader, stride;

  template <class T> __device__ explicit Pieces(const Segment<T>& segment) {
    reader = threadIdx.x % 2 * kPairs + threadIdx.x / 2;
    stride = (segment.packs() + kReaders * kPieces - 1) / (kReaders * kPieces);
    for (int round = 0; round < stride; ++round) {
#pragma unroll
      for (int first = 0; first < kPieces; first += kAtOnce) {
        Pack<T> loaded[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int pack = pack_of(first + i, round);
          if (segment.whole(pack)) loaded[i].bits = segment.bits(pack);
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int pack = pack_of(first + i, round);
          unsigned& top = largest[first + i];
          if (segment.whole(pack)) {
#pragma unroll
            for (const T v : loaded[i].v) top = max(top, ordered_bits(to_float(v)));
          } else {
            segment.visit(pack, [&](unsigned ordered, int) { top = max(top, ordered); });
          }
        }
      }
    }
#pragma unroll
    for (const unsigned top : largest) most = max(most, top);
  }

  __device__ int pack_of(int piece, int round) const {
    return (piece * stride + round) * kReaders + reader;
  }

  // Calls each(pack) for the packs of pieces with an element whose bits are at least `least`.
  template <class Each> __device__ void visit(unsigned least, Each each) const {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (largest[piece] < least) continue;
      for (int round = 0; round < stride; ++round) each(pack_of(piece, round));
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

// Gathers the elements whose bits are at least `least`, as many as there is room for; how many
// there are. The packs to look at again are listed first, so that all are on their way together.
template <class T>
__device__ int gather(Chosen& chosen, const Pieces& pieces, const Segment<T>& segment,
                      unsigned least) {
  __syncthreads();
  if (threadIdx.x == 0) chosen.count = chosen.pack_count = 0;
  __syncthreads();
  pieces.visit(least, [&](int pack) {
    const int place = atomicAdd(&chosen.pack_count, 1);
    if (place < kMostPacks) chosen.packs[place] = pack;
  });
  __syncthreads();
  const bool listed = chosen.pack_count <= kMostPacks;
  const int packs = listed ? chosen.pack_count : segment.packs();
  for (int i = threadIdx.x; i < packs; i += kReaders) {
    segment.visit(listed ? chosen.packs[i] : i, [&](unsigned ordered, int column) {
      if (ordered < least) return;
      const int place = atomicAdd(&chosen.count, 1);
      if (place < kMostCandidates) chosen.candidates[place] = make_key(ordered, column);
    });
  }
  __syncthreads();
  return chosen.count;
}

// A value that at least k elements reach, where there are so many, and for unordered data few
// more: the k-th largest of the pairs' own, the first of equals counting as larger. The members
// of a pair share the counting.
__device__ unsigned threshold_of(Chosen& chosen, unsigned own, int k) {
  const int pair = threadIdx.x / 2, member = threadIdx.x % 2;
  own = max(own, __shfl_xor(own, 1, 2));
  if (member == 0) chosen.maxima[pair] = own;
  if (threadIdx.x == 0) chosen.threshold = 1;  // no element has less
  __syncthreads();
  int larger = 0;
#pragma unroll 4
  for (int i = member * 4; i < kPairs; i += 8) {
    const uint4 four = *reinterpret_cast<const uint4*>(chosen.maxima + i);
    larger += (four.x > own - (i < pair)) + (four.y > own - (i + 1 < pair)) +
              (four.z > own - (i + 2 < pair)) + (four.w > own - (i + 3 < pair));
  }
  larger += __shfl_xor(larger, 1, 2);
  if (member == 0 && larger == k - 1 && own > 0) chosen.threshold = own;
  __syncthreads();
  return chosen.threshold;
}

// Calls emit(place, key) for the first elements that have these bits, from place `from` to k. The
// first 32 threads do it.
template <class T, class Emit>
__device__ void take_equals(const Segment<T>& segment, unsigned bits, int from, int k, Emit emit) {
  const int lane = threadIdx.x;
  for (int first = 0; first < segment.packs() && from < k; first += kGroup * kRun) {
    const auto each = [&](auto what) {
      for (int i = 0; i < kRun; ++i) {
        segment.visit(first + lane * kRun + i, [&](unsigned ordered, int column) {
          if (ordered == bits) what(column);
        });
      }
    };
    int own = 0;
    each([&](int) { ++own; });
    int through = own;  // up to this lane
#pragma unroll
    for (int distance = 1; distance < kGroup; distance *= 2) {
      const int left = __shfl_up(through, distance, kGroup);
      if (lane >= distance) through += left;
    }
    int place = from + through - own;
    from += __shfl(through, kGroup - 1, kGroup);
    if (own > 0 && place < k) each([&](int column) { emit(place++, make_key(bits, column)); });
  }
}

// blockIdx.x: the segments of all rows, one after the other, of `length` elements. With one
// segment a row the results go to values and indices, else the segment's keys to `keys`
// [rows, segments, k]: segments of longer rows hold at least k elements.
template <class T>
__global__ __launch_bounds__(kReaders, 4) void topk_segments(Problem<T> a, Key* keys, int segments,
                                                             int length) {
  __shared__ Chosen chosen;
  const int64_t row = blockIdx.x / segments;
  const T* in = a.x + row * a.cols;
  const int base = (int)(blockIdx.x % segments) * length - lead_of(in), k = a.k;
  const Segment<T> segment{in, base, min(base + length, a.cols)};
  const Pieces pieces(segment);
  const auto emit = [&](int place, Key key) {
    if (place >= k) return;
    if (segments > 1) keys[(int64_t)blockIdx.x * k + place] = key;
    else a.write(row, place, key);
  };
  unsigned threshold = threshold_of(chosen, pieces.most, k);
  const auto above = [&] {
    return threshold + 1 > 0 ? gather(chosen, pieces, segment, threshold + 1) : 0;
  };
  int count = gather(chosen, pieces, segment, threshold);
  const bool many = count > kMostCandidates;
  if (many) count = above();
  if (count > kMostCandidates) {
    for (unsigned high = ~0u; threshold < high;) {
      const unsigned middle = threshold + (high - threshold) / 2 + 1;
      const bool reached = gather(chosen, pieces, segment, middle) >= k;
      (reached ? threshold : high) = reached ? middle : middle - 1;
    }
    count = above();
  }
  for (int i = threadIdx.x; i < count; i += kReaders) {
    const Key own = chosen.candidates[i];
    int place = 0;
#pragma unroll 8
    for (int j = 0; j < count; ++j) place += chosen.candidates[j] > own ? 1 : 0;
    emit(place, own);
  }
  if (many && threadIdx.x < kGroup) take_equals(segment, threshold, count, k, emit);
}

// One block a row: the k largest of the segments' keys, which descend in each segment. Each key
// finds its place by halving.
template <class T>
__global__ __launch_bounds__(kMostKeys) void merge_segments(Problem<T> a, const Key* keys,
                                                            int segments) {
  __shared__ Key all[kMostKeys];
  const int64_t row = blockIdx.x;
  const int i = threadIdx.x, k = a.k, count = segments * k;
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
  if (place < k) a.write(row, place, own);
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

template <class T> hipError_t topk(const Problem<T>& a, void* workspace, hipStream_t stream) {
  constexpr int kPack = Pack<T>::kSize;
  const bool aligned = (uintptr_t)a.x % 16 == 0 && a.cols % kPack == 0;
  const int64_t span = aligned ? a.cols : a.cols + kPack - 1;  // with the widest lead
  if (a.cols <= kShortRow && a.k <= kSmallK) {
    const dim3 grid((unsigned)ceil_div(a.rows, kGroupsPerBlock));
    topk_short_rows<<<grid, dim3(kGroup * kGroupsPerBlock), 0, stream>>>(a);
    return hipGetLastError();
  }
  Key* keys = static_cast<Key*>(workspace);
  const int segments = (int)segment_count(a.rows, span);
  const int length = (int)ceil_div(ceil_div(span, segments), kPack) * kPack;
  const dim3 grid((unsigned)(a.rows * segments)), rows((unsigned)a.rows);
  topk_segments<<<grid, dim3(kReaders), 0, stream>>>(a, keys, segments, length);
  if (segments > 1) merge_segments<<<rows, dim3(kMostKeys), 0, stream>>>(a, keys, segments);
  return hipGetLastError();
}

}  // namespace

#define ENTRIES(NAME, T)                                                                         \
  extern "C" size_t NAME##_workspace(int64_t rows, int64_t cols, int64_t k) {                    \
    return workspace_bytes<T>(rows, cols, k);                                                    \
  }                                                                                              \
  extern "C" hipError_t NAME(const T* x, T* values, int64_t* indices, int64_t rows,              \
                             int64_t cols, int64_t k, void* workspace, hipStream_t stream) {     \
    return topk(Problem<T>{x, values, indices, rows, (int)cols, (int)k}, workspace, stream);     \
  }

ENTRIES(topk_f32, float)
ENTRIES(topk_f16, __half)
ENTRIES(topk_bf16, __hip_bfloat16)
