// Layer normalisation that reads a row from memory once.
//
//  * up to 1024 columns: 32 lanes a row, the row in their registers, shuffles only;
//  * up to 16384 columns: a block a row, the row in registers, two block reductions;
//  * longer rows: a block a row, in pieces, whose means and squared deviations are merged
//    by Chan's formula; a second pass, from the cache, writes.
//
// The mean is rounded, so deviations are taken from the rounded mean and their own mean is
// subtracted: rows with a large offset keep their digits. Rows are moved in 16-byte packs
// that lie on 16-byte boundaries whatever the alignment of the row; only the packs at its
// ends go element by element. Shuffles stay within 32 lanes: one source for waves of 32
// and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kGroup = 32;                  // lanes that reduce by shuffles
constexpr int kGroupsPerBlock = 8;          // rows of a block in the short-row kernel
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

template <class T> struct Arguments {
  const T *x, *weight, *bias;
  T* y;
  float eps;
  int64_t rows;
  int cols;
};

// What normalises a row: y = ((x - shift) - mean) * scale.
struct Normaliser {
  float shift, mean, scale;

  // `sums` holds the sum of x - shift and the sum of its square.
  __device__ Normaliser(float shift, float2 sums, int cols, float eps) : shift(shift) {
    const float inverse = 1.0f / (float)cols;
    mean = sums.x * inverse;
    const float variance = fmaxf(sums.y * inverse - mean * mean, 0.0f);
    scale = rsqrtf(variance + eps);
  }

  __device__ float operator()(float x) const { return ((x - shift) - mean) * scale; }
};

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

// kItems elements of a row for each of kLanes lanes, as they came: half the registers of float32,
// so that more rows are on their way. The slice begins at column
// `base`, which lies on a 16-byte boundary and may be negative; packs that are not wholly
// inside the row are moved element by element. kAligned says that there are none: every
// row, in every tensor, begins and ends on a boundary.
template <class T, int kLanes, int kItems, bool kAligned> struct Slice {
  static constexpr int kPack = Pack<T>::kSize;
  static constexpr int kPacks = kItems / kPack;
  Pack<T> packs[kPacks];
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

  // Loads the slice, with zeros outside the row. All packs are requested before the first
  // is looked at: a branch in between would wait for it.
  __device__ void load(const T* row) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      packs[p].bits = make_uint4(0, 0, 0, 0);
      if (whole(col)) packs[p].bits = *reinterpret_cast<const uint4*>(row + col);
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      if (!cut(col)) continue;
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        if (inside(col + i)) packs[p].v[i] = row[col + i];
      }
    }
  }

  // Writes the normalised slice; `a` has the parameters and says how things lie.
  __device__ void store(const Arguments<T>& a, int64_t row, const Normaliser& normalise) const {
    T* out = a.y + row * cols;
    const bool same = kAligned || (uintptr_t)a.x % 16 == (uintptr_t)a.y % 16;
    const bool wide = kAligned || (base % kPack == 0 && (uintptr_t)a.weight % 16 == 0 &&
                                   (uintptr_t)a.bias % 16 == 0);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      if (whole(col)) {
        const Pack<T> weight = parameters(a.weight + col, wide);
        const Pack<T> bias = parameters(a.bias + col, wide);
        Pack<T> pack;
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
          pack.v[i] = from_float<T>(normalise(to_float(packs[p].v[i])) * to_float(weight.v[i]) +
                                    to_float(bias.v[i]));
        }
        if (same) {
          *reinterpret_cast<uint4*>(out + col) = pack.bits;
        } else {
#pragma unroll
          for (int i = 0; i < kPack; ++i) out[col + i] = pack.v[i];
        }
      } else if (cut(col)) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
          const int c = col + i;
          if (inside(c)) {
            out[c] = from_float<T>(normalise(to_float(packs[p].v[i])) * to_float(a.weight[c]) +
                                   to_float(a.bias[c]));
          }
        }
      }
    }
  }

  static __device__ Pack<T> parameters(const T* from, bool wide) {
    Pack<T> pack;
    if (wide) {
      pack.bits = *reinterpret_cast<const uint4*>(from);
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i) pack.v[i] = from[i];
    }
    return pack;
  }

  // How many of the elements are inside the row.
  __device__ float count() const {
    int result = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
      const int first = col > 0 ? col : 0, last = col + kPack < cols ? col + kPack : cols;
      result += last > first ? last - first : 0;
    }
    return (float)result;
  }

  __device__ float sum() const {
    float result = 0.0f;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) result += to_float(packs[p].v[i]);
    }
    return result;
  }

  // The sums of element - shift and of its square, over the elements inside the row.
  __device__ float2 deviations(float shift) const {
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int col = column(p);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const bool counts = whole(col) || (!kAligned && inside(col + i));
        const float d = counts ? to_float(packs[p].v[i]) - shift : 0.0f;
        sums.x += d;
        sums.y += d * d;
      }
    }
    return sums;
  }
};

template <int kLanes> __device__ float lanes_sum(float v) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    v += __shfl_xor(v, distance, kGroup);
  }
  return v;
}

template <int kLanes> __device__ float2 lanes_sum(float2 v) {
  return make_float2(lanes_sum<kLanes>(v.x), lanes_sum<kLanes>(v.y));
}

// Block reduction with one barrier. Two call sites with a scratch each alternate, so
// that the other's barrier protects the reuse of a scratch.
template <int kThreads, class V> __device__ V block_sum(V v, V* scratch) {
  constexpr int kGroups = kThreads / kGroup;
  v = lanes_sum<kGroup>(v);
  if (threadIdx.x % kGroup == 0) scratch[threadIdx.x / kGroup] = v;
  __syncthreads();
  return lanes_sum<kGroups>(scratch[threadIdx.x % kGroups]);
}

template <class T, int kItems, bool kAligned>
__global__ __launch_bounds__(kGroup* kGroupsPerBlock) void layernorm_short_rows(Arguments<T> a) {
  const int lane = threadIdx.x % kGroup;
  const int64_t first = (int64_t)blockIdx.x * kGroupsPerBlock + threadIdx.x / kGroup;
  for (int64_t row = first; row < a.rows; row += (int64_t)gridDim.x * kGroupsPerBlock) {
    const T* in = a.x + row * a.cols;
    Slice<T, kGroup, kItems, kAligned> slice(-lead_of<kAligned>(in), a.cols, lane);
    slice.load(in);
    const float mean = lanes_sum<kGroup>(slice.sum()) / (float)a.cols;
    const float2 sums = lanes_sum<kGroup>(slice.deviations(mean));
    slice.store(a, row, Normaliser(mean, sums, a.cols, a.eps));
  }
}

template <class T, int kThreads, int kItems, bool kAligned>
__global__ __launch_bounds__(kThreads) void layernorm_rows(Arguments<T> a) {
  __shared__ float first_scratch[kThreads / kGroup];
  __shared__ float2 second_scratch[kThreads / kGroup];
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T* in = a.x + row * a.cols;
    Slice<T, kThreads, kItems, kAligned> slice(-lead_of<kAligned>(in), a.cols, threadIdx.x);
    slice.load(in);
    const float mean = block_sum<kThreads>(slice.sum(), first_scratch) / (float)a.cols;
    const float2 sums = block_sum<kThreads>(slice.deviations(mean), second_scratch);
    slice.store(a, row, Normaliser(mean, sums, a.cols, a.eps));
  }
}

// A thread's share of a long row so far. The mean is counted from `origin`, near which the
// row lies: a mean that held a large offset would be rounded at every merge.
struct Moments {
  float count = 0.0f, origin = 0.0f, mean = 0.0f, squares = 0.0f;

  // Chan's merge with a piece of `n` elements, given its sums about `shift`.
  __device__ void merge(float n, float shift, float2 sums) {
    if (n == 0.0f) return;
    if (count == 0.0f) origin = shift;
    const float piece_mean = sums.x / n;
    const float distance = (shift - origin) + piece_mean - mean;
    const float share = n / (count + n);
    squares += sums.y - sums.x * piece_mean + distance * distance * count * share;
    mean += distance * share;
    count += n;
  }
};

template <class T, int kThreads, int kItems, bool kAligned>
__global__ __launch_bounds__(kThreads) void layernorm_long_rows(Arguments<T> a) {
  __shared__ float first_scratch[kThreads / kGroup];
  __shared__ float2 second_scratch[kThreads / kGroup];
  constexpr int kPiece = kThreads * kItems;
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T* in = a.x + row * a.cols;
    const int first = -lead_of<kAligned>(in);

    Moments own;
    for (int base = first; base < a.cols; base += kPiece) {
      Slice<T, kThreads, kItems, kAligned> slice(base, a.cols, threadIdx.x);
      slice.load(in);
      const float count = slice.count();
      const float shift = count > 0.0f ? slice.sum() / count : 0.0f;
      own.merge(count, shift, slice.deviations(shift));
    }
    const float mean =
        block_sum<kThreads>((own.origin + own.mean) * own.count, first_scratch) / (float)a.cols;
    const float distance = (own.origin - mean) + own.mean;
    const float2 sums = block_sum<kThreads>(
        make_float2(distance * own.count, own.squares + distance * distance * own.count),
        second_scratch);
    const Normaliser normalise(mean, sums, a.cols, a.eps);

    for (int base = first; base < a.cols; base += kPiece) {
      Slice<T, kThreads, kItems, kAligned> slice(base, a.cols, threadIdx.x);
      slice.load(in);
      slice.store(a, row, normalise);
    }
  }
}

template <class T, bool kAligned> void launch(const Arguments<T>& a, hipStream_t stream) {
  const int64_t groups = (a.rows + kGroupsPerBlock - 1) / kGroupsPerBlock;
  const dim3 short_grid((unsigned)(groups < kMaxBlocks ? groups : kMaxBlocks));
  const dim3 short_block(kGroup * kGroupsPerBlock);
  const dim3 grid((unsigned)(a.rows < kMaxBlocks ? a.rows : kMaxBlocks));
  const int span = kAligned ? a.cols : a.cols + Pack<T>::kSize - 1;  // with the widest lead
  if constexpr (kAligned) {  // the common case: as few registers as each size needs
    if (span <= 8 * kGroup) {
      layernorm_short_rows<T, 8, kAligned><<<short_grid, short_block, 0, stream>>>(a);
      return;
    }
    if (span > 32 * kGroup && span <= 16 * 256) {
      layernorm_rows<T, 256, 16, kAligned><<<grid, dim3(256), 0, stream>>>(a);
      return;
    }
  }
  if (span <= 32 * kGroup) {
    layernorm_short_rows<T, 32, kAligned><<<short_grid, short_block, 0, stream>>>(a);
  } else if (span <= 32 * 256) {
    layernorm_rows<T, 256, 32, kAligned><<<grid, dim3(256), 0, stream>>>(a);
  } else if (span <= 32 * 512) {
    layernorm_rows<T, 512, 32, kAligned><<<grid, dim3(512), 0, stream>>>(a);
  } else {
    layernorm_long_rows<T, 512, 16, kAligned><<<grid, dim3(512), 0, stream>>>(a);
  }
}

bool aligned(const void* p) { return (uintptr_t)p % 16 == 0; }

template <class T> hipError_t layernorm(const Arguments<T>& a, hipStream_t stream) {
  if (a.cols % Pack<T>::kSize == 0 && aligned(a.x) && aligned(a.weight) && aligned(a.bias) &&
      aligned(a.y)) {
    launch<T, true>(a, stream);
  } else {
    launch<T, false>(a, stream);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t layernorm_f32(const float* x, const float* weight, const float* bias,
                                    float* y, float eps, int64_t rows, int64_t cols,
                                    hipStream_t stream) {
  return layernorm(Arguments<float>{x, weight, bias, y, eps, rows, (int)cols}, stream);
}

extern "C" hipError_t layernorm_f16(const __half* x, const __half* weight, const __half* bias,
                                    __half* y, float eps, int64_t rows, int64_t cols,
                                    hipStream_t stream) {
  return layernorm(Arguments<__half>{x, weight, bias, y, eps, rows, (int)cols}, stream);
}

extern "C" hipError_t layernorm_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                     const __hip_bfloat16* bias, __hip_bfloat16* y, float eps,
                                     int64_t rows, int64_t cols, hipStream_t stream) {
  return layernorm(Arguments<__hip_bfloat16>{x, weight, bias, y, eps, rows, (int)cols}, stream);
}
