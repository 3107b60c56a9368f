// Row-wise softmax that reads a row from memory once.
//
//  * up to 1024 columns: 32 lanes a row, the row in their registers, shuffles only;
//  * up to 16384 columns: a block a row, the row in registers, two block reductions;
//  * long rows on Hopper: a cluster of four or eight blocks a row, each with its part in
//    registers, which tell each other their maxima and sums while the next row arrives;
//  * else: a block a row, in pieces, read once for the maximum and the sum, and once to write.
//
// Rows are moved in 16-byte packs that lie on 16-byte boundaries whatever the alignment of
// the row; only the packs at its ends go element by element. Shuffles stay within 32
// lanes, so that one source serves waves of 32 and of 64.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kGroup = 32;  // lanes that reduce by shuffles
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

// 16 bytes of T, moved as `bits`: a compiler may cut a copy of the elements into pieces.
template <class T> union Pack {
  static constexpr int kSize = 16 / sizeof(T);
  uint4 bits;
  T v[kSize];
};

// How many elements lie between the last boundary of kBytes and `row`.
template <int kBytes, class T> __device__ int lead_of(const T* row) {
  return (int)((uintptr_t)row % kBytes / sizeof(T));
}

// kItems elements of a row for each of kLanes lanes, as float32, -inf outside the row. The
// slice begins at column `base`, which lies on a 16-byte boundary and may be negative; packs
// that are not wholly inside the row are moved element by element. kAligned says that there
// are none: every row, in every tensor, begins and ends on a boundary.
template <class T, int kLanes, int kItems, bool kAligned> struct Slice {
  static constexpr int kPack = Pack<T>::kSize, kPacks = kItems / kPack;
  float v[kItems];
  int base, cols, lane;

  __device__ int column(int pack) const { return base + (pack * kLanes + lane) * kPack; }
  __device__ bool whole(int col) const {
    return kAligned ? col < cols : col >= 0 && col <= cols - kPack;
  }
  __device__ bool cut(int col) const {
    return !kAligned && col > -kPack && col < cols && !whole(col);
  }

  // All packs are requested before the first is looked at: a branch in between would wait.
  __device__ Slice(const T* row, int base, int cols, int lane)
      : base(base), cols(cols), lane(lane) {
    Pack<T> packs[kPacks];
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      if (whole(col)) packs[p].bits = *reinterpret_cast<const uint4*>(row + col);
    }
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      for (int i = 0; i < kPack; ++i) {
        v[p * kPack + i] = whole(col) ? to_float(packs[p].v[i]) : -INFINITY;
      }
      if (!cut(col)) continue;
      for (int i = 0; i < kPack; ++i) {
        if ((unsigned)(col + i) < (unsigned)cols) v[p * kPack + i] = to_float(row[col + i]);
      }
    }
  }

  // `packs` says whether the output row lies like the input row.
  __device__ void store(T* row, bool packs, float factor) {
    for (int i = 0; i < kItems; ++i) v[i] *= factor;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      if ((kAligned || packs) && whole(col)) {
        Pack<T> pack;
        for (int i = 0; i < kPack; ++i) pack.v[i] = from_float<T>(v[p * kPack + i]);
        *reinterpret_cast<uint4*>(row + col) = pack.bits;
      } else if (!kAligned && (whole(col) || cut(col))) {
        for (int i = 0; i < kPack; ++i) {
          if ((unsigned)(col + i) < (unsigned)cols) row[col + i] = from_float<T>(v[p * kPack + i]);
        }
      }
    }
  }

  __device__ float largest() const {
    float result = v[0];
    for (int i = 1; i < kItems; ++i) result = fmaxf(result, v[i]);
    return result;
  }

  // Replaces every element by exp(element - shift); returns their sum.
  __device__ float exponentiate(float shift) {
    float sum = 0.0f;
    for (int i = 0; i < kItems; ++i) sum += v[i] = __expf(v[i] - shift);
    return sum;
  }
};

__device__ float add(float a, float b) { return a + b; }
__device__ float larger(float a, float b) { return fmaxf(a, b); }

template <int kLanes, float (*kOp)(float, float)> __device__ float reduce_lanes(float v) {
  for (int step = kLanes / 2; step > 0; step /= 2) v = kOp(v, __shfl_xor(v, step, kGroup));
  return v;
}

// Reduces over the kLanes lanes that share a row: a group, or a block, with one barrier. The two
// call sites alternate, each with a scratch of its own, which the other's barrier protects.
template <int kLanes, float (*kOp)(float, float)> __device__ float reduce(float v, float* scratch) {
  v = reduce_lanes<kGroup, kOp>(v);
  if constexpr (kLanes == kGroup) return v;
  constexpr int kGroups = kLanes / kGroup;
  if (threadIdx.x % kGroup == 0) scratch[threadIdx.x / kGroup] = v;
  __syncthreads();
  return reduce_lanes<kGroups, kOp>(scratch[threadIdx.x % kGroups]);
}

// kLanes lanes a row, which is read once.
template <class T, int kThreads, int kLanes, int kItems, bool kAligned>
__global__ __launch_bounds__(kThreads) void softmax_rows(
    const T* __restrict__ x, T* __restrict__ y, int64_t rows, int cols, bool packs) {
  __shared__ float maxima[kThreads / kGroup], sums[kThreads / kGroup];
  constexpr int kRows = kThreads / kLanes;
  const int lane = kRows == 1 ? threadIdx.x : threadIdx.x % kLanes;
  const int64_t first = (int64_t)blockIdx.x * kRows + (kRows == 1 ? 0 : threadIdx.x / kLanes);
  for (int64_t row = first; row < rows; row += (int64_t)gridDim.x * kRows) {
    const T* in = x + row * cols;
    Slice<T, kLanes, kItems, kAligned> slice(in, kAligned ? 0 : -lead_of<16>(in), cols, lane);
    const float largest = reduce<kLanes, larger>(slice.largest(), maxima);
    const float sum = reduce<kLanes, add>(slice.exponentiate(largest), sums);
    slice.store(y + row * cols, packs, 1.0f / sum);
  }
}

// A block a row, in pieces: a running maximum and a sum relative to it; then, from the cache, y.
template <class T, int kThreads, int kItems, bool kAligned>
__global__ __launch_bounds__(kThreads) void softmax_long_rows(
    const T* __restrict__ x, T* __restrict__ y, int64_t rows, int cols, bool packs) {
  __shared__ float maxima[kThreads / kGroup], sums[kThreads / kGroup];
  using Piece = Slice<T, kThreads, kItems, kAligned>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * cols;
    const int first = kAligned ? 0 : -lead_of<16>(in);
    float running = -INFINITY, sum = 0.0f;
    for (int base = first; base < cols; base += kThreads * kItems) {
      Piece piece(in, base, cols, threadIdx.x);
      const float largest = fmaxf(running, piece.largest());
      const float shift = largest == -INFINITY ? 0.0f : largest;  // the sum stays zero, not NaN
      sum = sum * __expf(running - shift) + piece.exponentiate(shift);
      running = largest;
    }
    const float largest = reduce<kThreads, larger>(running, maxima);
    const float shrink = running == -INFINITY ? 0.0f : __expf(running - largest);
    const float scale = 1.0f / reduce<kThreads, add>(sum * shrink, sums);
    for (int base = first; base < cols; base += kThreads * kItems) {
      Piece piece(in, base, cols, threadIdx.x);
      piece.exponentiate(largest);
      piece.store(y + row * cols, packs, scale);
    }
  }
}

#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900
#define CLUSTERS
// Clusters of blocks that stay: a row each at a time, which they take by ticket, a part of it each
// block. While a part is worked on in registers, that of the next row arrives in shared memory.
namespace clusters {

constexpr int kItems = 32, kLine = 128;  // of a thread; bytes, on whose boundaries parts begin
constexpr size_t kLeastRow = 96 << 10;   // bytes; shorter rows are read twice from the cache
template <class T> constexpr int kUnit = kLine / sizeof(T);
using Barrier = unsigned long long;

__device__ unsigned place(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void expect(Barrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(place(barrier)),
               "r"(bytes) : "memory");
}

// Waits until what was expected has come, for the time `turn`, counted from zero.
__device__ void wait(Barrier* barrier, int turn) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, "
               "[%0], %1;\n@!p bra again;}" ::"r"(place(barrier)), "r"(turn & 1) : "memory");
}

// Writes to another block of the cluster, where this one has `report`, and tells its barrier.
__device__ void send(int block, const float4* report, const Barrier* barrier, float largest,
                     float sum, int ticket) {
  asm volatile("{.reg .b32 to, bar; mapa.shared::cluster.u32 to, %1, %0;\n"
               "mapa.shared::cluster.u32 bar, %2, %0;\n"
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [to], "
               "{%3, %4, %5, %5}, [bar];}" ::"r"(block), "r"(place(report)), "r"(place(barrier)),
               "f"(largest), "f"(sum), "r"(ticket) : "memory");
}

__device__ float power_of_2(float v) {
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(v));
  return v;
}

// What follows may start at once, and waits for this where it takes tickets.
__global__ void clear(int* tickets) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  *tickets = 0;
}

template <class T, int kParts, int kThreads>
__global__ __launch_bounds__(kThreads, 2) __cluster_dims__(kParts) void softmax_parts(
    const T* __restrict__ x, T* __restrict__ y, int64_t rows, int cols, int length, bool packs,
    int* tickets) {
  constexpr int kPack = Pack<T>::kSize, kPacks = kItems / kPack, kAny = kGroup * kGroup;
  constexpr float kLog2e = 1.44269504f;
  extern __shared__ __align__(kLine) uint4 memory[];
  __shared__ float maxima[kGroup], sums[kGroup];
  __shared__ float4 reports[2][kParts];  // maximum, as a power of two, sum, and ticket of a part
  __shared__ Barrier barriers[3];
  Barrier *const arrived = barriers, *const heard = barriers + 1;
  T* const staged = reinterpret_cast<T*>(memory);
  const int tid = threadIdx.x, part = blockIdx.x % kParts, teams = gridDim.x / kParts;
  const int capacity = blockDim.x * kItems;

  // The part's first column, which the first part may have before the row.
  const auto start_of = [&](int row) {
    return part * length - lead_of<kLine>(x + (int64_t)row * cols);
  };
  // One thread: asks for the packs that cover the part and lie in the matrix.
  const auto fetch = [&](int row) {
    const T* in = x + (int64_t)row * cols;
    const int start = start_of(row), end = start + length < cols ? start + length : cols;
    int from = start < 0 ? -lead_of<16>(in) : start;
    int to = from + (end - from + kPack - 1) / kPack * kPack;
    if (row == 0 && from < 0) from += kPack;
    if (row == rows - 1 && to > cols) to -= kPack;
    const unsigned bytes = (to - from) * sizeof(T);
    expect(arrived, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(place(staged + from - start)), "l"(in + from), "r"(bytes),
                 "r"(place(arrived)) : "memory");
  };
  // Puts -inf around the row, and what no pack has brought at the matrix's ends where it belongs.
  const auto complete = [&](int row, int start) {
    const int at = (part == 0 ? 0 : (cols - start) / kPack * kPack) + tid, col = start + at;
    const bool inside = col >= 0 && col < cols;
    const bool left = (row == 0 && col < kPack) || (row == rows - 1 && col > cols - kPack);
    if (tid < 2 * kUnit<T> && at < capacity && (left || !inside)) {
      staged[at] = inside ? x[(int64_t)row * cols + col] : from_float<T>(-INFINITY);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // copies come here later
    __syncthreads();
  };

  for (int i = tid; i < capacity; i += blockDim.x) staged[i] = from_float<T>(-INFINITY);
  if (tid < kGroup) maxima[tid] = -INFINITY, sums[tid] = 0.0f;
  if (tid < 3) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(place(barriers + tid)));
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  int row = blockIdx.x / kParts, next = row + teams, ticket = 0;
  if (tid == 0) fetch(row);
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (part == 0 && tid == 0) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    ticket = atomicAdd(tickets, 1);
  }

  for (int turn = 0; row < rows; ++turn) {
    const int start = start_of(row), low = start < 0 ? -start : 0;
    const int high = cols - start < length ? cols - start : length;
    wait(arrived, turn);
    if (part == 0 || part == kParts - 1) complete(row, start);
    Pack<T> packed[kPacks];
    for (int p = 0; p < kPacks; ++p) packed[p].bits = memory[p * blockDim.x + tid];
    float v[kItems], most[4], some[4] = {};  // four of each, for shorter chains
    for (int i = 0; i < kItems; ++i) {
      v[i] = to_float(packed[i / kPack].v[i % kPack]);
      most[i % 4] = i < 4 ? v[i] : fmaxf(most[i % 4], v[i]);
    }
    most[0] = fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
    const float own = reduce<kAny, larger>(most[0], maxima) * kLog2e;
    if (tid == 0 && next < rows) fetch(next);
    const float shift = own == -INFINITY ? 0.0f : own;  // keeps the sum at zero, not NaN
    for (int i = 0; i < kItems; ++i) {
      v[i] = power_of_2(fmaf(v[i], kLog2e, -shift));
      some[i % 4] += v[i];
    }
    const float sum = reduce<kAny, add>((some[0] + some[1]) + (some[2] + some[3]), sums);

    const float4* said = reports[turn % 2];
    if (tid == 0) expect(heard + turn % 2, sizeof(reports[0]));
    if (tid < kGroup) ticket = __shfl(ticket, 0, kGroup);
    if (tid < kParts) send(tid, said + part, heard + turn % 2, own, sum, ticket);
    if (part == 0 && tid == 0) ticket = atomicAdd(tickets, 1);
    wait(heard + turn % 2, turn / 2);
    T* out = y + (int64_t)row * cols + start;
    row = next;
    next = 2 * teams + __float_as_int(said[0].z);
    float largest = -INFINITY, total = 0.0f;
    for (int i = 0; i < kParts; ++i) largest = fmaxf(largest, said[i].x);
    for (int i = 0; i < kParts; ++i) total += said[i].y * power_of_2(said[i].x - largest);
    const float scale = power_of_2(own - largest) / total;
    for (int p = 0; p < kPacks; ++p) {
      const int at = (p * blockDim.x + tid) * kPack;
      for (int i = 0; i < kPack; ++i) packed[p].v[i] = from_float<T>(v[p * kPack + i] * scale);
      if (packs && (p > 0 || at >= low) && at + kPack <= high) {
        const uint4 bits = packed[p].bits;  // in assembly, or the compiler takes them apart
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(out + at), "r"(bits.x),
                     "r"(bits.y), "r"(bits.z), "r"(bits.w) : "memory");
        continue;
      }
      for (int i = 0; i < kPack; ++i) {
        if (at + i >= low && at + i < high) out[at + i] = packed[p].v[i];
      }
    }
  }
}

// Whether rows are long enough, fit the threads' registers, and the kernel has been launched.
template <int kParts, int kThreads, class T>
bool launch(const T* x, T* y, int64_t rows, int cols, bool packs, int* tickets,
            hipStream_t stream) {
  constexpr int kUnits = kUnit<T> * kParts, kLanes = kItems * kGroup;
  const int length = (cols + kUnit<T> - 1 + kUnits - 1) / kUnits * kUnit<T>;  // and the widest lead
  const int threads = (length + kLanes - 1) / kLanes * kGroup, bytes = threads * kItems * sizeof(T);
  if (cols * sizeof(T) < kLeastRow || threads > kThreads) return false;
  const auto kernel = softmax_parts<T, kParts, kThreads>;
  hipFuncSetAttribute((const void*)kernel, hipFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaLaunchAttribute attribute = {cudaLaunchAttributeClusterDimension};
  attribute.val.clusterDim = {kParts, 1, 1};
  cudaLaunchConfig_t config = {dim3(kParts), dim3(threads), (size_t)bytes, stream, &attribute, 1};
  int most = 0;
  if (cudaOccupancyMaxActiveClusters(&most, kernel, &config) != 0 || most == 0) return false;
  clear<<<1, 1, 0, stream>>>(tickets);
  config.gridDim = dim3((unsigned)(rows < most ? rows : most) * kParts);
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return cudaLaunchKernelEx(&config, kernel, x, y, rows, cols, length, packs, tickets) == 0;
}

}  // namespace clusters
#endif

template <class T, bool kAligned>
void launch(const T* x, T* y, int64_t rows, int cols, int* tickets, hipStream_t stream) {
  const bool packs = (uintptr_t)x % 16 == (uintptr_t)y % 16;
  const int span = kAligned ? cols : cols + Pack<T>::kSize - 1;  // with the widest lead
  const auto start = [&](auto kernel, int threads, int lanes) {
    const int64_t blocks = (rows * lanes + threads - 1) / threads;
    const dim3 grid((unsigned)(blocks < kMaxBlocks ? blocks : kMaxBlocks));
    kernel<<<grid, dim3(threads), 0, stream>>>(x, y, rows, cols, packs);
  };
  // As few registers as each size needs.
  if (span <= 8 * 32) return start(softmax_rows<T, 256, 32, 8, kAligned>, 256, 32);
  if (span <= 16 * 32) return start(softmax_rows<T, 256, 32, 16, kAligned>, 256, 32);
  if (span <= 32 * 32) return start(softmax_rows<T, 256, 32, 32, kAligned>, 256, 32);
  if (span <= 16 * 256) return start(softmax_rows<T, 256, 256, 16, kAligned>, 256, 256);
  if (span <= 32 * 256) return start(softmax_rows<T, 256, 256, 32, kAligned>, 256, 256);
  if (span <= 32 * 512) return start(softmax_rows<T, 512, 512, 32, kAligned>, 512, 512);
#ifdef CLUSTERS
  if (clusters::launch<4, 448>(x, y, rows, cols, packs, tickets, stream)) return;
  if (clusters::launch<8, 448>(x, y, rows, cols, packs, tickets, stream)) return;
  if (clusters::launch<8, 544>(x, y, rows, cols, packs, tickets, stream)) return;
#endif
  start(softmax_long_rows<T, 512, 16, kAligned>, 512, 512);
}

template <class T>
hipError_t softmax(const T* x, T* y, int64_t rows, int64_t cols, void* workspace,
                   hipStream_t stream) {
  const bool aligned = cols % Pack<T>::kSize == 0 && ((uintptr_t)x | (uintptr_t)y) % 16 == 0;
  const auto start = aligned ? launch<T, true> : launch<T, false>;
  start(x, y, rows, (int)cols, static_cast<int*>(workspace), stream);
  return hipGetLastError();
}

}  // namespace

extern "C" size_t softmax_f32_workspace(int64_t, int64_t) { return sizeof(int); }
extern "C" size_t softmax_f16_workspace(int64_t, int64_t) { return sizeof(int); }

extern "C" hipError_t softmax_f32(const float* x, float* y, int64_t rows, int64_t cols,
                                  void* workspace, hipStream_t stream) {
  return softmax(x, y, rows, cols, workspace, stream);
}

extern "C" hipError_t softmax_f16(const __half* x, __half* y, int64_t rows, int64_t cols,
                                  void* workspace, hipStream_t stream) {
  return softmax(x, y, rows, cols, workspace, stream);
}
