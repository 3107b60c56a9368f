// Row-wise softmax that reads a row from memory once.
//
//  * up to 1024 columns: 32 lanes a row, the row in their registers, shuffles only;
//  * up to 16384 columns, aligned: a block a row, the row in registers, two block
//    reductions;
//  * longer or unaligned rows: a block a row, in pieces: the first pass keeps a running
//    maximum and a sum relative to it, the second, from the cache, writes.
//
// Accesses are 16 bytes wide where that alignment holds in every row, else single
// elements in coalesced order. Shuffles stay within 32 lanes, so that one source
// serves waves of 32 and of 64.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kGroup = 32;                  // lanes that reduce by shuffles
constexpr int kGroupsPerBlock = 8;          // rows of a block in the short-row kernel
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

// 16 bytes of T, or one element, moved by one instruction.
template <class T, bool kWide> struct alignas(kWide ? 16 : sizeof(T)) Pack {
  static constexpr int kSize = kWide ? 16 / sizeof(T) : 1;
  T v[kSize];
};

// kItems elements of a row for each of kLanes lanes, as float32.
template <class T, int kLanes, int kItems, bool kWide> struct Slice {
  using Unit = Pack<T, kWide>;
  static constexpr int kUnits = kItems / Unit::kSize;
  float v[kItems];

  static __device__ int column(int lane, int unit) {
    return (unit * kLanes + lane) * Unit::kSize;
  }

  // Loads the slice, -inf beyond the row's end.
  __device__ void load(const T* row, int cols, int lane) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int col = column(lane, u);
      const bool inside = col < cols;
      Unit unit;
      if (inside) unit = *reinterpret_cast<const Unit*>(row + col);
#pragma unroll
      for (int i = 0; i < Unit::kSize; ++i) {
        v[u * Unit::kSize + i] = inside ? to_float(unit.v[i]) : -INFINITY;
      }
    }
  }

  __device__ void store(T* row, int cols, int lane) const {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int col = column(lane, u);
      if (col >= cols) continue;
      Unit unit;
#pragma unroll
      for (int i = 0; i < Unit::kSize; ++i) unit.v[i] = from_float<T>(v[u * Unit::kSize + i]);
      *reinterpret_cast<Unit*>(row + col) = unit;
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

template <class T, int kItems, bool kWide>
__global__ __launch_bounds__(kGroup* kGroupsPerBlock) void softmax_short_rows(
    const T* __restrict__ x, T* __restrict__ y, int64_t rows, int cols) {
  const int lane = threadIdx.x % kGroup;
  const int64_t first = (int64_t)blockIdx.x * kGroupsPerBlock + threadIdx.x / kGroup;
  for (int64_t row = first; row < rows; row += (int64_t)gridDim.x * kGroupsPerBlock) {
    Slice<T, kGroup, kItems, kWide> slice;
    slice.load(x + row * cols, cols, lane);
    const float largest = lanes_max<kGroup>(slice.largest());
    const float sum = lanes_sum<kGroup>(slice.exponentiate(largest));
    slice.scale(1.0f / sum);
    slice.store(y + row * cols, cols, lane);
  }
}

template <class T, int kThreads, int kItems>
__global__ __launch_bounds__(kThreads) void softmax_rows(
    const T* __restrict__ x, T* __restrict__ y, int64_t rows, int cols) {
  __shared__ float maxima[kThreads / kGroup], sums[kThreads / kGroup];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Slice<T, kThreads, kItems, true> slice;
    slice.load(x + row * cols, cols, threadIdx.x);
    const float largest = block_max<kThreads>(slice.largest(), maxima);
    const float sum = block_sum<kThreads>(slice.exponentiate(largest), sums);
    slice.scale(1.0f / sum);
    slice.store(y + row * cols, cols, threadIdx.x);
  }
}

template <class T, int kThreads, int kItems, bool kWide>
__global__ __launch_bounds__(kThreads) void softmax_long_rows(
    const T* __restrict__ x, T* __restrict__ y, int64_t rows, int cols) {
  __shared__ float maxima[kThreads / kGroup], sums[kThreads / kGroup];
  constexpr int kPiece = kThreads * kItems;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * cols;
    Slice<T, kThreads, kItems, kWide> slice;

    float running = -INFINITY, sum = 0.0f;
    for (int start = 0; start < cols; start += kPiece) {
      slice.load(in + start, cols - start, threadIdx.x);
      const float largest = fmaxf(running, slice.largest());
      // Nothing but -inf so far: any finite shift keeps the sum at zero, not NaN.
      const float shift = largest == -INFINITY ? 0.0f : largest;
      sum = sum * __expf(running - shift) + slice.exponentiate(shift);
      running = largest;
    }
    const float largest = block_max<kThreads>(running, maxima);
    const float shift = running == -INFINITY ? 0.0f : __expf(running - largest);
    const float scale = 1.0f / block_sum<kThreads>(sum * shift, sums);

    for (int start = 0; start < cols; start += kPiece) {
      slice.load(in + start, cols - start, threadIdx.x);
      slice.exponentiate(largest);
      slice.scale(scale);
      slice.store(y + row * cols + start, cols - start, threadIdx.x);
    }
  }
}

template <class T, bool kWide>
void launch(const T* x, T* y, int64_t rows, int cols, hipStream_t stream) {
  const int64_t groups = (rows + kGroupsPerBlock - 1) / kGroupsPerBlock;
  const dim3 short_grid((unsigned)(groups < kMaxBlocks ? groups : kMaxBlocks));
  const dim3 short_block(kGroup * kGroupsPerBlock);
  const dim3 grid((unsigned)(rows < kMaxBlocks ? rows : kMaxBlocks));
  if (cols <= 8 * kGroup) {
    softmax_short_rows<T, 8, kWide><<<short_grid, short_block, 0, stream>>>(x, y, rows, cols);
    return;
  }
  if (cols <= 32 * kGroup) {
    softmax_short_rows<T, 32, kWide><<<short_grid, short_block, 0, stream>>>(x, y, rows, cols);
    return;
  }
  if constexpr (kWide) {
    if (cols <= 16 * 256) {
      softmax_rows<T, 256, 16><<<grid, dim3(256), 0, stream>>>(x, y, rows, cols);
      return;
    }
    if (cols <= 32 * 256) {
      softmax_rows<T, 256, 32><<<grid, dim3(256), 0, stream>>>(x, y, rows, cols);
      return;
    }
    if (cols <= 32 * 512) {
      softmax_rows<T, 512, 32><<<grid, dim3(512), 0, stream>>>(x, y, rows, cols);
      return;
    }
  }
  softmax_long_rows<T, 512, 16, kWide><<<grid, dim3(512), 0, stream>>>(x, y, rows, cols);
}

bool aligned(const void* p) { return (uintptr_t)p % 16 == 0; }

template <class T>
hipError_t softmax(const T* x, T* y, int64_t rows, int64_t cols, hipStream_t stream) {
  if (cols % Pack<T, true>::kSize == 0 && aligned(x) && aligned(y)) {
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
