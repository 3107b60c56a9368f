// Layer normalisation that reads a row from memory once.
//
//  * up to 1024 columns: 32 lanes a row, the row in their registers, shuffles only;
//  * up to 16384 columns, aligned: a block a row, the row in registers, two block
//    reductions;
//  * longer or unaligned rows: a block a row, in pieces, whose means and squared
//    deviations are merged by Chan's formula; a second pass, from the cache, writes.
//
// The mean is rounded, so deviations are taken from the rounded mean and their own
// mean is subtracted: rows with a large offset keep their digits. Accesses are 16
// bytes wide where that alignment holds everywhere, else single elements in coalesced
// order. Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
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

// 16 bytes of T, or one element, moved by one instruction.
template <class T, bool kWide> struct alignas(kWide ? 16 : sizeof(T)) Pack {
  static constexpr int kSize = kWide ? 16 / sizeof(T) : 1;
  T v[kSize];
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

// kItems elements of a row for each of kLanes lanes, as float32.
template <class T, int kLanes, int kItems, bool kWide> struct Slice {
  using Unit = Pack<T, kWide>;
  static constexpr int kUnits = kItems / Unit::kSize;
  float v[kItems];

  static __device__ int column(int lane, int unit) {
    return (unit * kLanes + lane) * Unit::kSize;
  }

  // Loads the slice, `fill` beyond the row's end.
  __device__ void load(const T* row, int cols, int lane, float fill) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int col = column(lane, u);
      const bool inside = col < cols;
      Unit unit;
      if (inside) unit = *reinterpret_cast<const Unit*>(row + col);
#pragma unroll
      for (int i = 0; i < Unit::kSize; ++i) {
        v[u * Unit::kSize + i] = inside ? to_float(unit.v[i]) : fill;
      }
    }
  }

  __device__ void store(T* row, const T* weight, const T* bias, int cols, int lane,
                        const Normaliser& normalise) const {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int col = column(lane, u);
      if (col >= cols) continue;
      const Unit factor = *reinterpret_cast<const Unit*>(weight + col);
      const Unit offset = *reinterpret_cast<const Unit*>(bias + col);
      Unit unit;
#pragma unroll
      for (int i = 0; i < Unit::kSize; ++i) {
        unit.v[i] = from_float<T>(normalise(v[u * Unit::kSize + i]) * to_float(factor.v[i]) +
                                  to_float(offset.v[i]));
      }
      *reinterpret_cast<Unit*>(row + col) = unit;
    }
  }

  // How many of the elements are inside the row.
  static __device__ float count(int cols, int lane) {
    float result = 0.0f;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) result += column(lane, u) < cols ? Unit::kSize : 0;
    return result;
  }

  __device__ float sum() const {
    float result = 0.0f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) result += v[i];
    return result;
  }

  // The sums of v - shift and of its square, over the elements inside the row.
  __device__ float2 deviations(float shift, int cols, int lane) const {
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const bool inside = column(lane, u) < cols;
#pragma unroll
      for (int i = 0; i < Unit::kSize; ++i) {
        const float d = inside ? v[u * Unit::kSize + i] - shift : 0.0f;
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

template <class T> struct Arguments {
  const T *x, *weight, *bias;
  T* y;
  float eps;
  int64_t rows;
  int cols;
};

template <class T, int kItems, bool kWide>
__global__ __launch_bounds__(kGroup* kGroupsPerBlock) void layernorm_short_rows(Arguments<T> a) {
  const int lane = threadIdx.x % kGroup;
  const int64_t first = (int64_t)blockIdx.x * kGroupsPerBlock + threadIdx.x / kGroup;
  for (int64_t row = first; row < a.rows; row += (int64_t)gridDim.x * kGroupsPerBlock) {
    Slice<T, kGroup, kItems, kWide> slice;
    slice.load(a.x + row * a.cols, a.cols, lane, 0.0f);
    const float mean = lanes_sum<kGroup>(slice.sum()) / (float)a.cols;
    const float2 sums = lanes_sum<kGroup>(slice.deviations(mean, a.cols, lane));
    slice.store(a.y + row * a.cols, a.weight, a.bias, a.cols, lane,
                Normaliser(mean, sums, a.cols, a.eps));
  }
}

template <class T, int kThreads, int kItems>
__global__ __launch_bounds__(kThreads) void layernorm_rows(Arguments<T> a) {
  __shared__ float first_scratch[kThreads / kGroup];
  __shared__ float2 second_scratch[kThreads / kGroup];
  const int lane = threadIdx.x;
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    Slice<T, kThreads, kItems, true> slice;
    slice.load(a.x + row * a.cols, a.cols, lane, 0.0f);
    const float mean = block_sum<kThreads>(slice.sum(), first_scratch) / (float)a.cols;
    const float2 sums =
        block_sum<kThreads>(slice.deviations(mean, a.cols, lane), second_scratch);
    slice.store(a.y + row * a.cols, a.weight, a.bias, a.cols, lane,
                Normaliser(mean, sums, a.cols, a.eps));
  }
}

// A thread's share of a long row so far.
struct Moments {
  float count = 0.0f, mean = 0.0f, squares = 0.0f;

  // Chan's merge with a piece of `n` elements, given its sums about `shift`.
  __device__ void merge(float n, float shift, float2 sums) {
    if (n == 0.0f) return;
    const float piece_mean = sums.x / n;
    const float distance = shift + piece_mean - mean;
    const float share = n / (count + n);
    squares += sums.y - sums.x * piece_mean + distance * distance * count * share;
    mean += distance * share;
    count += n;
  }
};

template <class T, int kThreads, int kItems, bool kWide>
__global__ __launch_bounds__(kThreads) void layernorm_long_rows(Arguments<T> a) {
  __shared__ float first_scratch[kThreads / kGroup];
  __shared__ float2 second_scratch[kThreads / kGroup];
  constexpr int kPiece = kThreads * kItems;
  const int lane = threadIdx.x;
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T* in = a.x + row * a.cols;
    Slice<T, kThreads, kItems, kWide> slice;

    Moments own;
    for (int start = 0; start < a.cols; start += kPiece) {
      slice.load(in + start, a.cols - start, lane, 0.0f);
      const float count = slice.count(a.cols - start, lane);
      const float shift = count > 0.0f ? slice.sum() / count : 0.0f;
      own.merge(count, shift, slice.deviations(shift, a.cols - start, lane));
    }
    const float mean = block_sum<kThreads>(own.mean * own.count, first_scratch) / (float)a.cols;
    const float distance = own.mean - mean;
    const float2 sums = block_sum<kThreads>(
        make_float2(distance * own.count, own.squares + distance * distance * own.count),
        second_scratch);
    const Normaliser normalise(mean, sums, a.cols, a.eps);

    for (int start = 0; start < a.cols; start += kPiece) {
      slice.load(in + start, a.cols - start, lane, 0.0f);
      slice.store(a.y + row * a.cols + start, a.weight + start, a.bias + start, a.cols - start,
                  lane, normalise);
    }
  }
}

template <class T, bool kWide> void launch(const Arguments<T>& a, hipStream_t stream) {
  const int64_t groups = (a.rows + kGroupsPerBlock - 1) / kGroupsPerBlock;
  const dim3 short_grid((unsigned)(groups < kMaxBlocks ? groups : kMaxBlocks));
  const dim3 short_block(kGroup * kGroupsPerBlock);
  const dim3 grid((unsigned)(a.rows < kMaxBlocks ? a.rows : kMaxBlocks));
  if (a.cols <= 8 * kGroup) {
    layernorm_short_rows<T, 8, kWide><<<short_grid, short_block, 0, stream>>>(a);
    return;
  }
  if (a.cols <= 32 * kGroup) {
    layernorm_short_rows<T, 32, kWide><<<short_grid, short_block, 0, stream>>>(a);
    return;
  }
  if constexpr (kWide) {
    if (a.cols <= 16 * 256) {
      layernorm_rows<T, 256, 16><<<grid, dim3(256), 0, stream>>>(a);
      return;
    }
    if (a.cols <= 32 * 256) {
      layernorm_rows<T, 256, 32><<<grid, dim3(256), 0, stream>>>(a);
      return;
    }
    if (a.cols <= 32 * 512) {
      layernorm_rows<T, 512, 32><<<grid, dim3(512), 0, stream>>>(a);
      return;
    }
  }
  layernorm_long_rows<T, 512, 16, kWide><<<grid, dim3(512), 0, stream>>>(a);
}

bool aligned(const void* p) { return (uintptr_t)p % 16 == 0; }

template <class T> hipError_t layernorm(const Arguments<T>& a, hipStream_t stream) {
  if (a.cols % Pack<T, true>::kSize == 0 && aligned(a.x) && aligned(a.weight) &&
      aligned(a.bias) && aligned(a.y)) {
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
