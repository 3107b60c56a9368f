// Row-wise softmax that reads a row from memory once.
//
//  * up to 1024 columns: 32 lanes a row, the row in their registers, shuffles only;
//  * up to 16384 columns: a block a row, the row in registers, two block reductions;
//  * longer rows, where blocks can form clusters: four or eight blocks a row, each with its
//    part in registers, which tell each other their maxima and sums;
//  * else: a block a row, in pieces: the first pass keeps a running maximum and a sum
//    relative to it; the second, from the cache, writes.
//
// Rows are moved in 16-byte packs that lie on 16-byte boundaries whatever the alignment of
// the row; only the packs at its ends go element by element. Shuffles stay within 32
// lanes, so that one source serves waves of 32 and of 64.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kGroup = 32;                  // lanes that reduce by shuffles
constexpr int kGroupsPerBlock = 8;          // rows of a block in the short-row kernel
constexpr int64_t kMaxBlocks = 1 << 20;
constexpr size_t kLeastShared = 96 << 10;   // bytes of a row; less is read twice from the cache

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

// How many elements lie between the last 16-byte boundary and `row`.
template <bool kAligned, class T> __device__ int lead_of(const T* row) {
  return kAligned ? 0 : (int)((uintptr_t)row % 16 / sizeof(T));
}

// kItems elements of a row for each of kLanes lanes, as float32. The slice begins at column
// `base`, which lies on a 16-byte boundary and may be negative; packs that are not wholly
// inside the row are moved element by element. kAligned says that there are none: every
// row, in every tensor, begins and ends on a boundary.
template <class T, int kLanes, int kItems, bool kAligned> struct Slice {
  static constexpr int kPack = Pack<T>::kSize;
  static constexpr int kPacks = kItems / kPack;
  float v[kItems];
  int base, cols, lane;

  __device__ Slice(int base, int cols, int lane) : base(base), cols(cols), lane(lane) {}

  __device__ int column(int pack) const { return base + (pack * kLanes + lane) * kPack; }
  __device__ bool inside(int col) const { return (unsigned)col < (unsigned)cols; }
  __device__ bool whole(int col) const {
    return kAligned ? col < cols : col >= 0 && col <= cols - kPack;
  }
  __device__ bool cut(int col) const {
    return !kAligned && col > -kPack && col < cols && !whole(col);
  }

  // Loads the slice, with `fill` outside the row. All packs are requested before the first
  // is looked at: a branch in between would wait for it.
  __device__ void load(const T* row, float fill) {
    Pack<T> packs[kPacks];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      if (whole(col)) packs[p].bits = *reinterpret_cast<const uint4*>(row + col);
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        v[p * kPack + i] = whole(col) ? to_float(packs[p].v[i]) : fill;
      }
      if (!cut(col)) continue;
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        if (inside(col + i)) v[p * kPack + i] = to_float(row[col + i]);
      }
    }
  }

  // `packs` says whether the output row lies like the input row.
  __device__ void store(T* row, bool packs) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      if ((kAligned || packs) && whole(col)) {
        Pack<T> pack;
#pragma unroll
        for (int i = 0; i < kPack; ++i) pack.v[i] = from_float<T>(v[p * kPack + i]);
        *reinterpret_cast<uint4*>(row + col) = pack.bits;
      } else if (!kAligned && (whole(col) || cut(col))) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
          if (inside(col + i)) row[col + i] = from_float<T>(v[p * kPack + i]);
        }
      }
    }
  }

  __device__ float largest() const {
    float result = v[0];
#pragma unroll
    for (int i = 1; i < kItems; ++i) result = fmaxf(result, v[i]);
    return result;
  }

  // Replaces every element by exp(element - shift); returns their sum.
  __device__ float exponentiate(float shift) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      v[i] = __expf(v[i] - shift);
      sum += v[i];
    }
    return sum;
  }

  __device__ void scale(float factor) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) v[i] *= factor;
  }
};

template <int kLanes> __device__ float lanes_max(float v) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    v = fmaxf(v, __shfl_xor(v, distance, kGroup));
  }
  return v;
}

template <int kLanes> __device__ float lanes_sum(float v) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    v += __shfl_xor(v, distance, kGroup);
  }
  return v;
}

// Block reductions: one barrier each. Every call site has its own scratch, and the
// two sites alternate, so that the other's barrier protects the reuse of a scratch.
template <int kThreads> __device__ float block_max(float v, float* scratch) {
  constexpr int kGroups = kThreads / kGroup;
  v = lanes_max<kGroup>(v);
  if (threadIdx.x % kGroup == 0) scratch[threadIdx.x / kGroup] = v;
  __syncthreads();
  return lanes_max<kGroups>(scratch[threadIdx.x % kGroups]);
}

template <int kThreads> __device__ float block_sum(float v, float* scratch) {
  constexpr int kGroups = kThreads / kGroup;
  v = lanes_sum<kGroup>(v);
  if (threadIdx.x % kGroup == 0) scratch[threadIdx.x / kGroup] = v;
  __syncthreads();
  return lanes_sum<kGroups>(scratch[threadIdx.x % kGroups]);
}

template <class T, int kItems, bool kAligned>
__global__ __launch_bounds__(kGroup* kGroupsPerBlock) void softmax_short_rows(
    const T* __restrict__ x, T* __restrict__ y, int64_t rows, int cols, bool packs) {
  const int lane = threadIdx.x % kGroup;
  const int64_t first = (int64_t)blockIdx.x * kGroupsPerBlock + threadIdx.x / kGroup;
  for (int64_t row = first; row < rows; row += (int64_t)gridDim.x * kGroupsPerBlock) {
    const T* in = x + row * cols;
    Slice<T, kGroup, kItems, kAligned> slice(-lead_of<kAligned>(in), cols, lane);
    slice.load(in, -INFINITY);
    const float largest = lanes_max<kGroup>(slice.largest());
    const float sum = lanes_sum<kGroup>(slice.exponentiate(largest));
    slice.scale(1.0f / sum);
    slice.store(y + row * cols, packs);
  }
}

template <class T, int kThreads, int kItems, bool kAligned>
__global__ __launch_bounds__(kThreads) void softmax_rows(const T* __restrict__ x,
                                                         T* __restrict__ y, int64_t rows,
                                                         int cols, bool packs) {
  __shared__ float maxima[kThreads / kGroup], sums[kThreads / kGroup];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * cols;
    Slice<T, kThreads, kItems, kAligned> slice(-lead_of<kAligned>(in), cols, threadIdx.x);
    slice.load(in, -INFINITY);
    const float largest = block_max<kThreads>(slice.largest(), maxima);
    const float sum = block_sum<kThreads>(slice.exponentiate(largest), sums);
    slice.scale(1.0f / sum);
    slice.store(y + row * cols, packs);
  }
}

template <class T, int kThreads, int kItems, bool kAligned>
__global__ __launch_bounds__(kThreads) void softmax_long_rows(const T* __restrict__ x,
                                                              T* __restrict__ y, int64_t rows,
                                                              int cols, bool packs) {
  __shared__ float maxima[kThreads / kGroup], sums[kThreads / kGroup];
  constexpr int kPiece = kThreads * kItems;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * cols;
    const int first = -lead_of<kAligned>(in);

    float running = -INFINITY, sum = 0.0f;
    for (int base = first; base < cols; base += kPiece) {
      Slice<T, kThreads, kItems, kAligned> slice(base, cols, threadIdx.x);
      slice.load(in, -INFINITY);
      const float largest = fmaxf(running, slice.largest());
      // Nothing but -inf so far: any finite shift keeps the sum at zero, not NaN.
      const float shift = largest == -INFINITY ? 0.0f : largest;
      sum = sum * __expf(running - shift) + slice.exponentiate(shift);
      running = largest;
    }
    const float largest = block_max<kThreads>(running, maxima);
    const float shrink = running == -INFINITY ? 0.0f : __expf(running - largest);
    const float scale = 1.0f / block_sum<kThreads>(sum * shrink, sums);

    for (int base = first; base < cols; base += kPiece) {
      Slice<T, kThreads, kItems, kAligned> slice(base, cols, threadIdx.x);
      slice.load(in, -INFINITY);
      slice.exponentiate(largest);
      slice.scale(scale);
      slice.store(y + row * cols, packs);
    }
  }
}

#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900
// Columns of a part: a row's parts are equal, and of whole packs.
template <class T, int kParts> __host__ __device__ int part_length(int span) {
  constexpr int kUnit = kParts * Pack<T>::kSize;
  return (span + kUnit - 1) / kUnit * Pack<T>::kSize;
}

// A cluster of blocks a row: each keeps its part in registers and tells the others its maximum
// and its sum.
template <class T, int kThreads, int kItems, int kParts, bool kAligned>
__global__ __launch_bounds__(kThreads, 2) __cluster_dims__(kParts) void softmax_shared_rows(
    const T* __restrict__ x, T* __restrict__ y, int cols, bool packs) {
  __shared__ float maxima[kThreads / kGroup], sums[kThreads / kGroup];
  __shared__ float2 parts[kParts];
  const int part = blockIdx.x % kParts;
  const int64_t row = blockIdx.x / kParts;
  const T* in = x + row * cols;
  const int lead = lead_of<kAligned>(in), length = part_length<T, kParts>(cols + lead);
  const int first = part * length - lead;
  const int end = first + length < cols ? first + length : cols;
  asm volatile("barrier.cluster.arrive.relaxed.aligned;");
  Slice<T, kThreads, kItems, kAligned> slice(first, end, threadIdx.x);
  slice.load(in, -INFINITY);
  const float own = block_max<kThreads>(slice.largest(), maxima);
  // All -inf: any finite shift keeps the sum at zero, not NaN.
  const float sum = block_sum<kThreads>(slice.exponentiate(own == -INFINITY ? 0.0f : own), sums);
  asm volatile("barrier.cluster.wait.aligned;");  // every block is there to be written to
  if (threadIdx.x < kParts) {
    const unsigned mine = (unsigned)__cvta_generic_to_shared(&parts[part]);
    unsigned theirs;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"(threadIdx.x));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(theirs), "f"(own), "f"(sum)
                 : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  float largest = -INFINITY, total = 0.0f;
#pragma unroll
  for (int i = 0; i < kParts; ++i) largest = fmaxf(largest, parts[i].x);
#pragma unroll
  for (int i = 0; i < kParts; ++i) total += parts[i].y * __expf(parts[i].x - largest);
  slice.scale(__expf(own - largest) / total);
  slice.store(y + row * cols, packs);
}

// Whether the row's parts fit registers, and the kernel has been launched.
template <class T, int kParts, bool kAligned>
bool share(const T* x, T* y, int64_t rows, int cols, int span, bool packs, hipStream_t stream) {
  constexpr int kThreads = 512, kItems = 32;
  if (span * sizeof(T) < kLeastShared || part_length<T, kParts>(span) > kThreads * kItems) {
    return false;
  }
  const dim3 grid((unsigned)(rows * kParts));
  softmax_shared_rows<T, kThreads, kItems, kParts, kAligned>
      <<<grid, dim3(kThreads), 0, stream>>>(x, y, cols, packs);
  return true;
}
#else
template <class T, int kParts, bool kAligned>
bool share(const T*, T*, int64_t, int, int, bool, hipStream_t) {
  return false;
}
#endif

template <class T, bool kAligned>
void launch(const T* x, T* y, int64_t rows, int cols, hipStream_t stream) {
  const int64_t groups = (rows + kGroupsPerBlock - 1) / kGroupsPerBlock;
  const dim3 short_grid((unsigned)(groups < kMaxBlocks ? groups : kMaxBlocks));
  const dim3 short_block(kGroup * kGroupsPerBlock);
  const dim3 grid((unsigned)(rows < kMaxBlocks ? rows : kMaxBlocks));
  const bool packs = (uintptr_t)x % 16 == (uintptr_t)y % 16;
  const int span = kAligned ? cols : cols + Pack<T>::kSize - 1;  // with the widest lead
  if constexpr (kAligned) {  // the common case: as few registers as each size needs
    if (span <= 8 * kGroup) {
      softmax_short_rows<T, 8, kAligned>
          <<<short_grid, short_block, 0, stream>>>(x, y, rows, cols, packs);
      return;
    }
    if (span <= 16 * kGroup) {
      softmax_short_rows<T, 16, kAligned>
          <<<short_grid, short_block, 0, stream>>>(x, y, rows, cols, packs);
      return;
    }
    if (span > 32 * kGroup && span <= 16 * 256) {
      softmax_rows<T, 256, 16, kAligned><<<grid, dim3(256), 0, stream>>>(x, y, rows, cols, packs);
      return;
    }
  }
  if (span <= 32 * kGroup) {
    softmax_short_rows<T, 32, kAligned>
        <<<short_grid, short_block, 0, stream>>>(x, y, rows, cols, packs);
  } else if (span <= 32 * 256) {
    softmax_rows<T, 256, 32, kAligned><<<grid, dim3(256), 0, stream>>>(x, y, rows, cols, packs);
  } else if (span <= 32 * 512) {
    softmax_rows<T, 512, 32, kAligned><<<grid, dim3(512), 0, stream>>>(x, y, rows, cols, packs);
  } else if (!share<T, 4, kAligned>(x, y, rows, cols, span, packs, stream) &&
             !share<T, 8, kAligned>(x, y, rows, cols, span, packs, stream)) {
    softmax_long_rows<T, 512, 16, kAligned>
        <<<grid, dim3(512), 0, stream>>>(x, y, rows, cols, packs);
  }
}

bool aligned(const void* p) { return (uintptr_t)p % 16 == 0; }

template <class T>
hipError_t softmax(const T* x, T* y, int64_t rows, int64_t cols, hipStream_t stream) {
  if (cols % Pack<T>::kSize == 0 && aligned(x) && aligned(y)) {
    launch<T, true>(x, y, rows, (int)cols, stream);
  } else {
    launch<T, false>(x, y, rows, (int)cols, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t softmax_f32(const float* x, float* y, int64_t rows, int64_t cols,
                                  hipStream_t stream) {
  return softmax(x, y, rows, cols, stream);
}

extern "C" hipError_t softmax_f16(const __half* x, __half* y, int64_t rows, int64_t cols,
                                  hipStream_t stream) {
  return softmax(x, y, rows, cols, stream);
}
