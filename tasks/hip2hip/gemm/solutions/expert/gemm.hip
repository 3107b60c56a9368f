// c = a @ b with register tiles, for machines without (or not using) matrix units.
//
// 256 threads compute a 128x128 tile of c, 8x8 elements each, as four 4x4 quadrants so
// that fragments come from shared memory 16 bytes at a time without bank conflicts. The
// operands' next tiles are fetched into registers while the current ones are multiplied,
// and shared memory is double buffered: one barrier a step. A thread moves four elements
// of each operand a step, whatever the tile.
//
// Where 128x128 tiles would leave the device idle, tiles are 64x64 (4x4 elements a
// thread) and k is split among blocks; their float32 partial products, in the workspace,
// are added in a fixed order by a second kernel.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;            // elements of one load, and of a fragment's piece
constexpr int64_t kEnoughBlocks = 256;  // blocks that keep a large device busy
constexpr int64_t kLeastDepth = 256;  // do not split k into less
constexpr int64_t kRowsOfTiles = 8;   // tiles are visited in bands of so many rows

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

template <class T> struct alignas(kVector * sizeof(T)) Pack {
  T v[kVector];
};

struct Shape {
  int64_t m, n, k;
};

// How the product is cut into blocks.
struct Plan {
  int tile;         // edge of a block's tile of c
  int64_t splits;   // parts of k
  int64_t depth;    // elements of k in each part, the last may be shorter
};

// The first `count` of the four elements at p, and zeros. Rows that are aligned end with a
// whole pack.
template <class T, bool kAligned> __device__ Pack<T> fetch(const T* p, int count) {
  Pack<T> pack;
#pragma unroll
  for (int i = 0; i < kVector; ++i) pack.v[i] = from_float<T>(0.0f);
  if constexpr (kAligned) {
    if (count > 0) pack = *reinterpret_cast<const Pack<T>*>(p);
  } else {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (i < count) pack.v[i] = p[i];
    }
  }
  return pack;
}

// Where the block's tile starts. Bands of tile rows are walked column by column, so that
// blocks that run together share rows of a and columns of b in the cache.
template <int kTile> __device__ void tile_origin(const Shape& s, int64_t& row, int64_t& col) {
  const int64_t tile_rows = (s.m + kTile - 1) / kTile;
  const int64_t tile_cols = (s.n + kTile - 1) / kTile;
  const int64_t band = blockIdx.x / (kRowsOfTiles * tile_cols);
  const int64_t inside = blockIdx.x % (kRowsOfTiles * tile_cols);
  const int64_t left = tile_rows - band * kRowsOfTiles;
  const int64_t height = left < kRowsOfTiles ? left : kRowsOfTiles;
  row = (band * kRowsOfTiles + inside % height) * kTile;
  col = inside / height * kTile;
}

// One block: a kTile x kTile tile of the product over its part of k. Out is T, or float
// when the parts of a split product go to the workspace.
template <class T, class Out, int kTile, bool kAligned>
__global__ __launch_bounds__(kThreads, 2) void gemm_tiles(const T* __restrict__ a,
                                                          const T* __restrict__ b,
                                                          Out* __restrict__ c, Shape s,
                                                          int64_t depth) {
  constexpr int kDepth = kThreads * kVector / kTile;  // elements of k in a step
  constexpr int kQuads = kTile / 16 / kVector;        // 4-wide pieces of a thread's fragment
  constexpr int kSpan = kTile / kQuads;               // distance between the pieces
  constexpr int kPitch = kTile + 4;                   // keeps the transposed stores of a apart
  alignas(16) __shared__ float a_tiles[2][kDepth][kPitch];  // transposed
  alignas(16) __shared__ float b_tiles[2][kDepth][kPitch];

  int64_t row0, col0;
  tile_origin<kTile>(s, row0, col0);
  const int64_t k0 = blockIdx.y * depth;

  // What this thread moves: four elements along k of a, four along n of b.
  const int tid = threadIdx.x;
  const int a_row = tid / (kDepth / kVector), a_k = tid % (kDepth / kVector) * kVector;
  const int b_k = tid / (kTile / kVector), b_col = tid % (kTile / kVector) * kVector;
  // What it computes: 32 lanes cover 4 x 8 fragments, which reuses more of what they load
  // from shared memory than a 2 x 16 arrangement does.
  const int lane = tid % 32, group = tid / 32;
  const int row_piece = (group / 2 * 4 + lane / 8) * kVector;
  const int col_piece = (group % 2 * 8 + lane % 8) * kVector;

  const T* a_from = a + (row0 + a_row) * s.k + k0 + a_k;
  const T* b_from = b + (k0 + b_k) * s.n + col0 + b_col;
  const bool a_inside = row0 + a_row < s.m;
  const int b_count = (int)(s.n - col0) - b_col;
  // Both take what is left of the block's part of k, and go on to the next step.
  const auto fetch_a = [&](int left) {
    const T* from = a_from;
    a_from += kDepth;
    return fetch<T, kAligned>(from, a_inside ? left - a_k : 0);
  };
  const auto fetch_b = [&](int left) {
    const T* from = b_from;
    b_from += kDepth * s.n;
    return fetch<T, kAligned>(from, b_k < left ? b_count : 0);
  };
  const auto stage = [&](int buffer, const Pack<T>& from_a, const Pack<T>& from_b) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) a_tiles[buffer][a_k + i][a_row] = to_float(from_a.v[i]);
    *reinterpret_cast<float4*>(&b_tiles[buffer][b_k][b_col]) =
        make_float4(to_float(from_b.v[0]), to_float(from_b.v[1]), to_float(from_b.v[2]),
                    to_float(from_b.v[3]));
  };

  float sums[kQuads * kVector][kQuads * kVector] = {};
  int left = (int)(k0 + depth < s.k ? depth : s.k - k0);
  stage(0, fetch_a(left), fetch_b(left));
  __syncthreads();
  for (int buffer = 0; left > 0;) {
    left -= kDepth;
    Pack<T> next_a, next_b;
    if (left > 0) {
      next_a = fetch_a(left);
      next_b = fetch_b(left);
    }
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float4 a_piece[kQuads], b_piece[kQuads];
#pragma unroll
      for (int q = 0; q < kQuads; ++q) {
        a_piece[q] = *reinterpret_cast<const float4*>(&a_tiles[buffer][i][q * kSpan + row_piece]);
        b_piece[q] = *reinterpret_cast<const float4*>(&b_tiles[buffer][i][q * kSpan + col_piece]);
      }
#pragma unroll
      for (int r = 0; r < kQuads; ++r) {
        const float rows[kVector] = {a_piece[r].x, a_piece[r].y, a_piece[r].z, a_piece[r].w};
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
#pragma unroll
          for (int q = 0; q < kQuads; ++q) {
            float* sum = &sums[r * kVector + j][q * kVector];
            sum[0] += rows[j] * b_piece[q].x;
            sum[1] += rows[j] * b_piece[q].y;
            sum[2] += rows[j] * b_piece[q].z;
            sum[3] += rows[j] * b_piece[q].w;
          }
        }
      }
    }
    if (left > 0) {
      buffer ^= 1;
      stage(buffer, next_a, next_b);
      __syncthreads();
    }
  }

  Out* part = c + blockIdx.y * s.m * s.n;
#pragma unroll
  for (int r = 0; r < kQuads * kVector; ++r) {
    const int64_t row = row0 + r / kVector * kSpan + row_piece + r % kVector;
    if (row >= s.m) continue;
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const int64_t col = col0 + q * kSpan + col_piece;
      Pack<Out> pack;
#pragma unroll
      for (int j = 0; j < kVector; ++j) pack.v[j] = from_float<Out>(sums[r][q * kVector + j]);
      if constexpr (kAligned) {
        if (col < s.n) *reinterpret_cast<Pack<Out>*>(part + row * s.n + col) = pack;
      } else {
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          if (col + j < s.n) part[row * s.n + col + j] = pack.v[j];
        }
      }
    }
  }
}

// c = the sum of the partial products, always in the same order.
template <class T>
__global__ __launch_bounds__(kThreads) void add_parts(const float* __restrict__ parts,
                                                      T* __restrict__ c, int64_t elements,
                                                      int64_t splits) {
  const int64_t stride = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < elements; i += stride) {
    float sum = 0.0f;
    for (int64_t part = 0; part < splits; ++part) sum += parts[part * elements + i];
    c[i] = from_float<T>(sum);
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t tile_count(const Shape& s, int tile) { return ceil_div(s.m, tile) * ceil_div(s.n, tile); }

Plan plan_for(const Shape& s) {
  if (tile_count(s, 128) >= kEnoughBlocks / 2) return {128, 1, s.k};
  int64_t splits = kEnoughBlocks / tile_count(s, 64);
  if (splits > s.k / kLeastDepth) splits = s.k / kLeastDepth;
  if (splits < 2) return {64, 1, s.k};
  // A part is a multiple of kVector deep, so that its rows of a stay aligned.
  const int64_t depth = ceil_div(ceil_div(s.k, splits), kVector) * kVector;
  return {64, ceil_div(s.k, depth), depth};
}

size_t workspace_bytes(const Shape& s) {
  const int64_t splits = plan_for(s).splits;
  return splits > 1 ? splits * s.m * s.n * sizeof(float) : 0;
}

template <class T, class Out>
void launch(const T* a, const T* b, Out* c, const Shape& s, const Plan& plan,
            hipStream_t stream) {
  const auto aligned = [](const auto* p) { return (uintptr_t)p % (kVector * sizeof(*p)) == 0; };
  const bool vectors =
      s.k % kVector == 0 && s.n % kVector == 0 && aligned(a) && aligned(b) && aligned(c);
  const dim3 grid((unsigned)tile_count(s, plan.tile), (unsigned)plan.splits);
  if (plan.tile == 64) {
    if (vectors) {
      gemm_tiles<T, Out, 64, true><<<grid, dim3(kThreads), 0, stream>>>(a, b, c, s, plan.depth);
    } else {
      gemm_tiles<T, Out, 64, false><<<grid, dim3(kThreads), 0, stream>>>(a, b, c, s, plan.depth);
    }
  } else if constexpr (sizeof(Out) == sizeof(T)) {  // large tiles are never split
    if (vectors) {
      gemm_tiles<T, Out, 128, true><<<grid, dim3(kThreads), 0, stream>>>(a, b, c, s, plan.depth);
    } else {
      gemm_tiles<T, Out, 128, false><<<grid, dim3(kThreads), 0, stream>>>(a, b, c, s, plan.depth);
    }
  }
}

template <class T>
hipError_t gemm(const T* a, const T* b, T* c, const Shape& s, void* workspace,
                hipStream_t stream) {
  const Plan plan = plan_for(s);
  if (plan.splits == 1) {
    launch(a, b, c, s, plan, stream);
    return hipGetLastError();
  }
  float* parts = static_cast<float*>(workspace);
  launch(a, b, parts, s, plan, stream);
  const int64_t blocks = ceil_div(s.m * s.n, kThreads);
  add_parts<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(parts, c, s.m * s.n,
                                                                      plan.splits);
  return hipGetLastError();
}

}  // namespace

extern "C" size_t gemm_f32_workspace(int64_t m, int64_t n, int64_t k) {
  return workspace_bytes({m, n, k});
}

extern "C" size_t gemm_f16_workspace(int64_t m, int64_t n, int64_t k) {
  return workspace_bytes({m, n, k});
}

extern "C" hipError_t gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                               int64_t k, void* workspace, hipStream_t stream) {
  return gemm(a, b, c, {m, n, k}, workspace, stream);
}

extern "C" hipError_t gemm_f16(const __half* a, const __half* b, __half* c, int64_t m, int64_t n,
                               int64_t k, void* workspace, hipStream_t stream) {
  return gemm(a, b, c, {m, n, k}, workspace, stream);
}
