// Attention of one query per head, split over the context.
//
// A block takes one head and one part of its context. In it, a team of 8, 16 or 32 lanes
// (for dim up to 64, 128 or 256) holds the query, 8 elements a lane, and walks over every
// n-th key: scores by shuffles within the team, softmax with a running maximum, the
// weighted values in registers. Keys and values are read 16 bytes at a time, several rows
// in flight, each exactly once. The block's teams are merged through shared memory. Parts
// of a head meet in the workspace, where a second kernel merges them in a fixed order.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kItems = 8;                    // elements of a row in each lane
constexpr int kRowsInFlight = 2;             // keys that a team handles at once
constexpr int64_t kEnoughBlocks = 512;       // blocks that keep a large device busy
constexpr int64_t kLeastPart = 256;          // do not split the context into less
constexpr int64_t kPartStep = 128;           // parts are a multiple of this
constexpr int kMostParts = 512;

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

// A lane's share of a row of up to kItems * kLanes elements, still in T.
template <class T, int kLanes, bool kWide> struct Share {
  using Unit = Pack<T, kWide>;
  static constexpr int kUnits = kItems / Unit::kSize;
  Unit units[kUnits];

  static __device__ int column(int lane, int item) {
    return (item / Unit::kSize * kLanes + lane) * Unit::kSize + item % Unit::kSize;
  }

  // Zero beyond the end of the row. No branch depends on the row, so that the loads of
  // several rows are in flight together.
  __device__ void load(const T* row, int dim, int lane) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int col = column(lane, u * Unit::kSize);
#pragma unroll
      for (int i = 0; i < Unit::kSize; ++i) units[u].v[i] = from_float<T>(0.0f);
      if (col < dim) units[u] = *reinterpret_cast<const Unit*>(row + col);
    }
  }

  __device__ float operator[](int item) const {
    return to_float(units[item / Unit::kSize].v[item % Unit::kSize]);
  }
};

template <int kLanes> __device__ float team_sum(float v) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    v += __shfl_xor(v, distance, kLanes);
  }
  return v;
}

// A shift that makes exp(score - shift) safe where no score has been seen yet.
__device__ float finite(float largest) { return largest == -INFINITY ? 0.0f : largest; }

// How a head's context is cut. Parts are equal but for the last, and none is empty.
struct Plan {
  int64_t parts, length;
};

// What a block leaves of its part when a head has several: sums relative to the largest
// score, in the workspace as `largest` and `weight` [heads, parts], `sums` [heads, parts, dim].
struct Parts {
  float *largest, *weight, *sums;
};

// blockIdx.x: the parts of all heads, one after the other.
template <class T, int kLanes, bool kWide>
__global__ __launch_bounds__(kThreads) void attend(const T* __restrict__ q,
                                                   const T* __restrict__ k,
                                                   const T* __restrict__ v, T* __restrict__ y,
                                                   Parts parts, Plan plan, int64_t ctx,
                                                   int dim) {
  using Row = Share<T, kLanes, kWide>;
  constexpr int kTeams = kThreads / kLanes;
  __shared__ float team_largest[kTeams], team_weight[kTeams];
  __shared__ float team_sums[kTeams][kLanes * kItems];
  const int lane = threadIdx.x % kLanes, team = threadIdx.x / kLanes;
  const int64_t head = blockIdx.x / plan.parts;
  const int64_t start = blockIdx.x % plan.parts * plan.length;
  const int64_t end = start + plan.length < ctx ? start + plan.length : ctx;
  const T* keys = k + head * ctx * dim;
  const T* values = v + head * ctx * dim;

  float query[kItems], sums[kItems];
  Row own;
  own.load(q + head * dim, dim, lane);
  const float scale = rsqrtf((float)dim);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    query[i] = own[i] * scale;
    sums[i] = 0.0f;
  }
  float largest = -INFINITY, weight = 0.0f;

  for (int64_t base = start + team; base - team < end; base += kTeams * kRowsInFlight) {
    Row key[kRowsInFlight], value[kRowsInFlight];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const int64_t j = base + r * kTeams;
      const int64_t row = (j < end ? j : end - 1) * dim;  // what is read twice counts once
      key[r].load(keys + row, dim, lane);
      value[r].load(values + row, dim, lane);
    }
    float score[kRowsInFlight];
    float next = largest;
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      float dot = 0.0f;
#pragma unroll
      for (int i = 0; i < kItems; ++i) dot += query[i] * key[r][i];
      dot = team_sum<kLanes>(dot);
      score[r] = base + r * kTeams < end ? dot : -INFINITY;
      next = fmaxf(next, score[r]);
    }
    const float shift = finite(next);
    const float shrink = __expf(largest - shift);
    weight *= shrink;
#pragma unroll
    for (int i = 0; i < kItems; ++i) sums[i] *= shrink;
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const float p = __expf(score[r] - shift);
      weight += p;
#pragma unroll
      for (int i = 0; i < kItems; ++i) sums[i] += p * value[r][i];
    }
    largest = next;
  }

  if (lane == 0) team_largest[team] = largest;
  __syncthreads();
  float block_largest = -INFINITY;
  for (int t = 0; t < kTeams; ++t) block_largest = fmaxf(block_largest, team_largest[t]);
  const float shrink = __expf(largest - finite(block_largest));
  if (lane == 0) team_weight[team] = weight * shrink;
#pragma unroll
  for (int i = 0; i < kItems; ++i) team_sums[team][Row::column(lane, i)] = sums[i] * shrink;
  __syncthreads();

  float block_weight = 0.0f;
  for (int t = 0; t < kTeams; ++t) block_weight += team_weight[t];
  for (int d = threadIdx.x; d < dim; d += kThreads) {
    float sum = 0.0f;
    for (int t = 0; t < kTeams; ++t) sum += team_sums[t][d];
    if (plan.parts == 1) {
      y[head * dim + d] = from_float<T>(sum / block_weight);
    } else {
      parts.sums[(int64_t)blockIdx.x * dim + d] = sum;
    }
  }
  if (plan.parts > 1 && threadIdx.x == 0) {
    parts.largest[blockIdx.x] = block_largest;
    parts.weight[blockIdx.x] = block_weight;
  }
}

// One block a head: the parts' sums, brought to the same shift.
template <class T>
__global__ __launch_bounds__(kThreads) void merge_parts(Parts parts, T* __restrict__ y,
                                                        int count, int dim) {
  __shared__ float factors[kMostParts];
  const int64_t head = blockIdx.x;
  const float* part_largest = parts.largest + head * count;
  const float* part_weight = parts.weight + head * count;
  const float* part_sums = parts.sums + head * count * dim;
  float largest = -INFINITY;
#pragma unroll 8
  for (int p = 0; p < count; ++p) largest = fmaxf(largest, part_largest[p]);
  for (int p = threadIdx.x; p < count; p += kThreads) {
    factors[p] = __expf(part_largest[p] - finite(largest));
  }
  __syncthreads();
  float weight = 0.0f;
#pragma unroll 8
  for (int p = 0; p < count; ++p) weight += factors[p] * part_weight[p];
  for (int d = threadIdx.x; d < dim; d += kThreads) {
    float sum = 0.0f;
#pragma unroll 8
    for (int p = 0; p < count; ++p) sum += factors[p] * part_sums[(int64_t)p * dim + d];
    y[head * dim + d] = from_float<T>(sum / weight);
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

Plan plan_for(int64_t heads, int64_t ctx) {
  int64_t parts = ceil_div(kEnoughBlocks, heads);
  if (parts > kMostParts) parts = kMostParts;
  if (parts > ceil_div(ctx, kLeastPart)) parts = ceil_div(ctx, kLeastPart);
  const int64_t length = ceil_div(ceil_div(ctx, parts), kPartStep) * kPartStep;
  return {ceil_div(ctx, length), length};
}

size_t workspace_bytes(int64_t heads, int64_t ctx, int64_t dim) {
  const int64_t parts = plan_for(heads, ctx).parts;
  return parts > 1 ? heads * parts * (dim + 2) * sizeof(float) : 0;
}

bool aligned(const void* p) { return (uintptr_t)p % 16 == 0; }

template <class T>
hipError_t decode(const T* q, const T* k, const T* v, T* y, int64_t heads, int64_t ctx, int dim,
                  void* workspace, hipStream_t stream) {
  const Plan plan = plan_for(heads, ctx);
  const int64_t blocks = heads * plan.parts;
  Parts parts = {};
  if (plan.parts > 1) {
    float* floats = static_cast<float*>(workspace);
    parts = {floats, floats + blocks, floats + 2 * blocks};
  }
  const dim3 grid((unsigned)blocks), block(kThreads);
  if (dim % Pack<T, true>::kSize != 0 || !aligned(q) || !aligned(k) || !aligned(v)) {
    attend<T, 32, false><<<grid, block, 0, stream>>>(q, k, v, y, parts, plan, ctx, dim);
  } else if (dim <= 8 * kItems) {
    attend<T, 8, true><<<grid, block, 0, stream>>>(q, k, v, y, parts, plan, ctx, dim);
  } else if (dim <= 16 * kItems) {
    attend<T, 16, true><<<grid, block, 0, stream>>>(q, k, v, y, parts, plan, ctx, dim);
  } else {
    attend<T, 32, true><<<grid, block, 0, stream>>>(q, k, v, y, parts, plan, ctx, dim);
  }
  if (plan.parts > 1) {
    merge_parts<T><<<dim3((unsigned)heads), block, 0, stream>>>(parts, y, (int)plan.parts, dim);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" size_t attention_decode_f32_workspace(int64_t batch, int64_t heads, int64_t ctx,
                                                 int64_t dim) {
  return workspace_bytes(batch * heads, ctx, dim);
}

extern "C" size_t attention_decode_f16_workspace(int64_t batch, int64_t heads, int64_t ctx,
                                                 int64_t dim) {
  return workspace_bytes(batch * heads, ctx, dim);
}

extern "C" size_t attention_decode_bf16_workspace(int64_t batch, int64_t heads, int64_t ctx,
                                                  int64_t dim) {
  return workspace_bytes(batch * heads, ctx, dim);
}

extern "C" hipError_t attention_decode_f32(const float* q, const float* k, const float* v,
                                           float* y, int64_t batch, int64_t heads, int64_t ctx,
                                           int64_t dim, void* workspace, hipStream_t stream) {
  return decode(q, k, v, y, batch * heads, ctx, (int)dim, workspace, stream);
}

extern "C" hipError_t attention_decode_f16(const __half* q, const __half* k, const __half* v,
                                           __half* y, int64_t batch, int64_t heads, int64_t ctx,
                                           int64_t dim, void* workspace, hipStream_t stream) {
  return decode(q, k, v, y, batch * heads, ctx, (int)dim, workspace, stream);
}

extern "C" hipError_t attention_decode_bf16(const __hip_bfloat16* q, const __hip_bfloat16* k,
                                            const __hip_bfloat16* v, __hip_bfloat16* y,
                                            int64_t batch, int64_t heads, int64_t ctx,
                                            int64_t dim, void* workspace, hipStream_t stream) {
  return decode(q, k, v, y, batch * heads, ctx, (int)dim, workspace, stream);
}
