// Row-wise top-k in one pass over memory, by a threshold; no sort, no histogram.
//
// Rows are read in 16-byte packs, of which each thread remembers the largest value, with the first
// pack that has it, and that of each of some pieces. Eight units, warps or blocks, take the n-th
// largest of their threads'; the least of these is a threshold that at least k elements reach and,
// for unordered data, few more. Keys of 64 bits make the earlier of equals the larger: so ties end
// at the threshold, too, and results are the same in every run. Only pieces that reach it are read
// again, and what they hold finds its rank by counting what is larger. Should too much reach it,
// the results are found one by one: slow, and very rare. Few and long rows are shared by eight
// blocks: on Hopper by a cluster, else a second kernel merges. Short rows take 32 lanes each.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

using Key = unsigned long long;  // 0 is less than the key of any element
constexpr int kLanes = 32, kUnits = 8, kThreads = kUnits * kLanes;
constexpr int kAtOnce = 4, kReaders = 2;  // packs asked for together; threads that read a piece
constexpr int kMaxK = 64, kRoom = 1024, kLine = 8;  // candidates of a row; packs of 128 bytes
constexpr int kShared = 8, kFewRows = 128, kLeastShared = 32 << 10;  // blocks, rows, columns
constexpr int kSmallK = 16, kShortItems = 8, kShortRow = kLanes * kShortItems;

// 16 bytes of T, moved as `bits`: a compiler may cut a copy of the elements into pieces.
template <class T> union Pack {
  static constexpr int kSize = 16 / sizeof(T);
  uint4 bits;
  T v[kSize];
};

// The value's bits as an unsigned number of the same order: NaN is largest, none is below 2.
__device__ unsigned ordered_bits(float v) {
  const unsigned bits = __float_as_uint(v);
  return v != v ? 0xffffffffu : (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
}

__device__ float value_of(unsigned ordered) {
  return __uint_as_float((ordered & 0x80000000u) ? ordered ^ 0x80000000u : ~ordered);
}

// Of equal values the one at the smaller place, a column or a pack, has the larger key.
__device__ Key make_key(unsigned ordered, unsigned place) { return (Key)ordered << 32 | ~place; }
__device__ unsigned ordered_of(Key key) { return (unsigned)(key >> 32); }
__device__ unsigned place_of(Key key) { return ~(unsigned)key; }

__device__ int lane_id() { return threadIdx.x % kLanes; }
__device__ int warp_id() { return threadIdx.x / kLanes; }

__device__ Key lanes_max(Key key) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned high = __reduce_max_sync(~0u, ordered_of(key));
  return make_key(high, ~__reduce_max_sync(~0u, ordered_of(key) == high ? (unsigned)key : 0u));
#else
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    key = max(key, __shfl_xor_sync(~0ull, key, distance, kLanes));
  }
  return key;
#endif
}

// The n-th largest of the lanes' keys, which are distinct; 0 where there are fewer.
__device__ Key lanes_nth(Key key, int n) {
  Key largest = 0;
  for (int i = 0; i < n; ++i) {
    largest = lanes_max(key);
    if (key == largest) key = 0;
  }
  return largest;
}

// What a call is about: x [rows, cols], values and indices [rows, k].
template <class T> struct Problem {
  const T* x;
  T* values;
  int64_t *indices, rows;
  int cols, k;

  __device__ void write(int64_t row, int rank, Key key) const {
    values[row * k + rank] = T(value_of(ordered_of(key)));
    indices[row * k + rank] = place_of(key);
  }
};

// One row of at most kShortRow elements for every 32 lanes; k <= kSmallK.
template <class T> __global__ __launch_bounds__(kThreads) void topk_short_rows(Problem<T> a) {
  __shared__ Key candidates[kUnits][kShortRow];
  __shared__ int counts[kUnits];
  const int lane = lane_id(), warp = warp_id();
  const int64_t row = (int64_t)blockIdx.x * kUnits + warp;
  if (row >= a.rows) return;
  if (lane == 0) counts[warp] = 0;
  __syncwarp();
  Key keys[kShortItems], best = 0;
  for (int i = 0; i < kShortItems; ++i) {
    const int col = i * kLanes + lane;
    keys[i] = col < a.cols ? make_key(ordered_bits((float)a.x[row * a.cols + col]), col) : 0;
    best = max(best, keys[i]);
  }
  const Key threshold = max(lanes_nth(best, a.k), (Key)1);
  unsigned reach = 0;
  for (int i = 0; i < kShortItems; ++i) reach |= (keys[i] >= threshold ? 1u : 0u) << i;
  int place = reach == 0 ? 0 : atomicAdd(&counts[warp], __popc(reach));
  for (int i = 0; i < kShortItems; ++i) {
    if (reach >> i & 1) candidates[warp][place++] = keys[i];
  }
  __syncwarp();
  const int count = counts[warp];
  for (int i = lane; i < count; i += kLanes) {
    const Key own = candidates[warp][i];
    int rank = 0;
    for (int j = 0; j < count; ++j) rank += candidates[warp][j] > own ? 1 : 0;
    if (rank < a.k) a.write(row, rank, own);
  }
}

// A row as whole packs of 16 bytes, on 16-byte boundaries, and some elements at its edges.
template <class T> struct Row {
  const T* data;
  int cols, head, packs;  // columns; those before the first pack; packs

  __device__ Row(const T* data, int cols) : data(data), cols(cols) {
    head = min(cols, (int)(-(uintptr_t)data % 16 / sizeof(T)));
    packs = (cols - head) / Pack<T>::kSize;
  }
  __device__ Pack<T> load(int pack) const { return {((const uint4*)(data + head))[pack]}; }
  __device__ Key key(int col) const { return make_key(ordered_bits((float)data[col]), col); }
};

// Shared memory of each of the kBlocks blocks of a cluster, or of one on its own.
template <int kBlocks> struct Scratch {
  static constexpr int kPieces = kBlocks > 1 ? 8 : 16, kSlots = kRoom / kBlocks;
  Key maxima[kUnits * kLine], thresholds[kUnits];
  unsigned short pieces[kThreads * kPieces];  // that are read again: the first pack
  int listed, count;
  Key candidates[kBlocks][kSlots];            // of each block
  int counts[kBlocks], ranks[kSlots];         // of each block; of the own candidates

  __device__ Scratch& of(int block);
  __device__ static int own() { return blockIdx.x % kBlocks; }

  // The i-th pack of a thread. Lines are dealt to blocks and then to warps, so that the order of
  // elements in a row matters little. In kRound packs each piece has one of every thread.
  static constexpr int kRound = kThreads * kBlocks * kPieces;
  __device__ static int pack(int i) {
    const int line = lane_id() / kLine * kUnits + warp_id();
    return (i * kThreads / kLine + line) * kBlocks * kLine + own() * kLine + lane_id() % kLine;
  }
};

// What a thread remembers of its packs.
template <class S> struct Maxima {
  unsigned pieces[S::kPieces] = {};  // of every kPieces-th pack, as ordered bits; or 0
  Key best = 0;                      // the largest value and the first pack with it

  template <class T> __device__ Maxima(const Row<T>& row) {
    for (int round = 0; S::pack(round) < row.packs; round += S::kPieces) {
      for (int piece = 0; piece < S::kPieces; piece += kAtOnce) {
        const auto at = [&](int i) { return S::pack(round + piece + i); };
        Pack<T> loaded[kAtOnce];
        for (int i = 0; i < kAtOnce; ++i) {
          if (at(i) < row.packs) loaded[i] = row.load(at(i));
        }
        for (int i = 0; i < kAtOnce; ++i) {
          if (at(i) < row.packs) note(piece + i, at(i), loaded[i]);
        }
      }
    }
  }

  template <class T> __device__ void note(int piece, int pack, const Pack<T>& loaded) {
    float largest = (float)loaded.v[0];
    for (int i = 1; i < loaded.kSize; ++i) {
      const float v = (float)loaded.v[i];
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
      asm("max.NaN.f32 %0, %0, %1;" : "+f"(largest) : "f"(v));
#else
      largest = largest != largest || largest > v ? largest : v;
#endif
    }
    const unsigned ordered = ordered_bits(largest + 0.0f);  // no -0
    pieces[piece] = max(pieces[piece], ordered);
    best = max(best, make_key(ordered, pack));
  }
};

#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900
template <int kBlocks> __device__ Scratch<kBlocks>& Scratch<kBlocks>::of(int block) {
  if (kBlocks == 1) return *this;
  Scratch* other;
  asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(this), "r"(block));
  return *other;
}
template <int kBlocks> __device__ void sync() {
  if (kBlocks == 1) return __syncthreads();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#else
template <int kBlocks> __device__ Scratch<kBlocks>& Scratch<kBlocks>::of(int) { return *this; }
template <int kBlocks> __device__ void sync() { __syncthreads(); }
#endif

// A value and a pack such that k elements are larger, or equal and not in a later pack.
template <int kBlocks> __device__ Key find_threshold(Scratch<kBlocks>& s, Key best, int k) {
  if (kBlocks > 1) {  // the block is a unit: each of its warps takes the maxima of some threads
    for (int distance = kLanes / 2; distance >= kLine; distance /= 2) {
      best = max(best, __shfl_xor_sync(~0ull, best, distance, kLanes));
    }
    s.maxima[warp_id() * kLine + lane_id() % kLine] = best;
    __syncthreads();
    best = max(s.maxima[lane_id()], s.maxima[lane_id() + kLanes]);
  }
  const Key nth = lanes_nth(best, (k + kUnits - 1) / kUnits);
  if (lane_id() == 0) s.of(warp_id()).thresholds[kBlocks > 1 ? s.own() : warp_id()] = nth;
  sync<kBlocks>();
  Key least[2] = {~0ull, ~0ull};  // of half of the units
  for (int i = 0; i < kUnits; ++i) least[i % 2] = min(least[i % 2], s.thresholds[i]);
  Key threshold = min(least[0], least[1]);
  if (kBlocks == 1) {  // where enough threads reach the larger one, so do elements
    const Key larger = max(least[0], least[1]);
    if (__syncthreads_count(best >= larger ? 1 : 0) >= k) threshold = larger;
  }
  return max(threshold, make_key(1, ~0u));
}

// Lists the thread's pieces that may reach the threshold.
template <class S> __device__ void list_pieces(S& s, const Maxima<S>& maxima, Key threshold) {
  if (maxima.best < threshold) return;
  unsigned reach = 0;
  for (int i = 0; i < s.kPieces; ++i) {
    reach |= (make_key(maxima.pieces[i], s.pack(i)) >= threshold ? 1u : 0u) << i;
  }
  int place = atomicAdd(&s.listed, __popc(reach));
  for (; reach != 0; reach &= reach - 1) s.pieces[place++] = s.pack(__ffs(reach) - 1);
}

// Tells all blocks of a candidate.
template <int kBlocks> __device__ void put(Scratch<kBlocks>& s, int place, Key key) {
  if (place >= s.kSlots) return;
  for (int i = 0; i < kBlocks; ++i) s.of(i).candidates[s.own()][place] = key;
  s.ranks[place] = 0;
}

// Puts the elements of a pack that may reach the threshold.
template <class T, class S>
__device__ void take(S& s, const Row<T>& row, int pack, Key threshold) {
  const Pack<T> loaded = row.load(pack);
  // What is not above the limit does not reach it; NaN is. There is nothing between -0 and 0.
  unsigned limit = ordered_of(threshold) - ((unsigned)pack <= place_of(threshold) ? 1 : 0);
  if (limit == ordered_bits(-0.0f)) --limit;
  const float number = value_of(min(limit, ordered_bits(INFINITY)));
  unsigned reach = 0;
  for (int i = 0; i < loaded.kSize; ++i) reach |= ((float)loaded.v[i] <= number ? 0u : 1u) << i;
  if (reach == 0) return;
  int place = atomicAdd(&s.count, __popc(reach));
  const int first = row.head + pack * loaded.kSize - 1;
  for (; reach != 0; reach &= reach - 1) put(s, place++, row.key(first + __ffs(reach)));
}

// Puts what may reach the threshold: of the listed pieces, and of the edges.
template <class T, class S> __device__ void gather(S& s, const Row<T>& row, Key threshold) {
  for (int i = threadIdx.x / kReaders; i < s.listed; i += kThreads / kReaders) {
    int pack = s.pieces[i] + threadIdx.x % kReaders * s.kRound;
    for (; pack < row.packs; pack += kReaders * s.kRound) take(s, row, pack, threshold);
  }
  const int edge = threadIdx.x;
  const int column = edge < row.head ? edge : edge + row.packs * Pack<T>::kSize;
  if (s.own() > 0 || column >= row.cols) return;
  const Key key = row.key(column);
  if (ordered_of(key) >= ordered_of(threshold)) put(s, atomicAdd(&s.count, 1), key);
}

// Finds the ranks of the block's candidates: each warp counts the larger ones among some.
template <int kBlocks> __device__ void rank(Scratch<kBlocks>& s) {
  constexpr int kStep = kUnits / kBlocks;
  const int block = warp_id() / kStep, count = s.counts[block];
  const Key* const candidates = s.candidates[block];
  for (int i = lane_id(); i < s.count; i += kLanes) {
    const Key own = s.candidates[s.own()][i];
    int above = 0;
    for (int j = warp_id() % kStep; j < count; j += kStep) above += candidates[j] > own;
    atomicAdd(&s.ranks[i], above);
  }
  __syncthreads();
}

// Calls emit(rank, key) for the k largest of a row, one after the other.
template <class T, class Emit>
__device__ void take_one_by_one(const Row<T>& row, int k, Emit emit) {
  __shared__ Key largest[kUnits];
  Key last = ~0ull;
  for (int rank = 0; rank < k; ++rank) {
    Key best = 0;
    for (int i = threadIdx.x; i < row.cols; i += kThreads) {
      if (row.key(i) < last) best = max(best, row.key(i));
    }
    best = lanes_max(best);
    __syncthreads();
    largest[warp_id()] = best;
    __syncthreads();
    last = lanes_max(largest[lane_id() % kUnits]);
    if (threadIdx.x == 0) emit(rank, last);
  }
}

// Calls emit(rank, key) for the k largest of a row: each block of a cluster for its own.
template <int kBlocks, class T, class Emit>
__device__ void select(const Row<T>& row, int k, Emit emit) {
  __shared__ Scratch<kBlocks> s;
  if (threadIdx.x == 0) s.listed = s.count = 0;
  const Maxima<Scratch<kBlocks>> maxima(row);
  const Key threshold = find_threshold(s, maxima.best, k);
  list_pieces(s, maxima, threshold);
  __syncthreads();
  gather(s, row, threshold);
  __syncthreads();
  if (threadIdx.x < kBlocks) s.of(threadIdx.x).counts[s.own()] = s.count;
  sync<kBlocks>();
  bool many = false;
  for (int i = 0; i < kBlocks; ++i) many |= s.counts[i] > s.kSlots;
  if (many) {
    if (s.own() == 0) take_one_by_one(row, k, emit);
    return;
  }
  rank(s);
  for (int i = threadIdx.x; i < s.count; i += kThreads) {
    if (s.ranks[i] < k) emit(s.ranks[i], s.candidates[s.own()][i]);
  }
}

// A block for each part of a row. With several, their keys go to `keys` [rows, parts, k].
template <class T>
__global__ __launch_bounds__(kThreads, 4) void topk_parts(Problem<T> a, Key* keys, int parts) {
  const int row = blockIdx.x / parts, length = (a.cols + parts - 1) / parts;
  const int first = blockIdx.x % parts * length;
  const Row<T> part(a.x + (int64_t)row * a.cols + first, min(length, a.cols - first));
  select<1>(part, a.k, [&](int rank, Key key) {
    key = make_key(ordered_of(key), place_of(key) + first);
    if (parts == 1) a.write(row, rank, key);
    else keys[(int64_t)blockIdx.x * a.k + rank] = key;
  });
}

#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900
template <class T>
__global__ __launch_bounds__(kThreads, 5) __cluster_dims__(kShared) void topk_shared(Problem<T> a) {
  // Every block is there to be written to.
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;");
  const int row = blockIdx.x / kShared;
  select<kShared>(Row<T>(a.x + (int64_t)row * a.cols, a.cols), a.k,
                  [&](int rank, Key key) { a.write(row, rank, key); });
}
#else
// One block a row: the k largest of the parts' keys.
template <class T>
__global__ __launch_bounds__(kShared* kMaxK) void merge_parts(Problem<T> a, const Key* keys) {
  __shared__ Key all[kShared * kMaxK];
  const int i = threadIdx.x, count = kShared * a.k;
  all[i] = i < count ? keys[(int64_t)blockIdx.x * count + i] : 0;
  __syncthreads();
  int rank = 0;
  for (int j = 0; j < count; ++j) rank += all[j] > all[i] ? 1 : 0;
  if (rank < a.k) a.write(blockIdx.x, rank, all[i]);
}
#endif

bool is_shared(int64_t rows, int64_t cols) { return rows <= kFewRows && cols >= kLeastShared; }

template <class T> hipError_t topk(const Problem<T>& a, Key* keys, hipStream_t stream) {
  const dim3 rows((unsigned)a.rows), parts(rows.x * kShared), threads(kThreads);
  if (a.cols <= kShortRow && a.k <= kSmallK) {
    topk_short_rows<<<dim3((rows.x + kUnits - 1) / kUnits), threads, 0, stream>>>(a);
  } else if (!is_shared(a.rows, a.cols)) {
    topk_parts<<<rows, threads, 0, stream>>>(a, keys, 1);
  } else {
#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900
    topk_shared<<<parts, threads, 0, stream>>>(a);
#else
    topk_parts<<<parts, threads, 0, stream>>>(a, keys, kShared);
    merge_parts<<<rows, dim3(kShared * kMaxK), 0, stream>>>(a, keys);
#endif
  }
  return hipGetLastError();
}

}  // namespace

#define ENTRIES(NAME, T)                                                                         \
  extern "C" size_t NAME##_workspace(int64_t rows, int64_t cols, int64_t k) {                    \
    return is_shared(rows, cols) ? rows * kShared * k * sizeof(Key) : 0;                         \
  }                                                                                              \
  extern "C" hipError_t NAME(const T* x, T* values, int64_t* indices, int64_t rows,              \
                             int64_t cols, int64_t k, void* workspace, hipStream_t stream) {     \
    return topk(Problem<T>{x, values, indices, rows, (int)cols, (int)k}, (Key*)workspace, stream); \
  }

ENTRIES(topk_f32, float)
ENTRIES(topk_f16, __half)
ENTRIES(topk_bf16, __hip_bfloat16)
