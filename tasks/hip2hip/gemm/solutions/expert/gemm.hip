// c = a @ b with register tiles, and on Hopper's matrix units for aligned float16.
//
// 256 threads compute a 128x128 tile of c, 8x8 elements each, as four 4x4 quadrants so that
// fragments come from shared memory 16 bytes at a time without bank conflicts. The next tiles are
// fetched into registers while the current ones are multiplied, and shared memory is double
// buffered. Where such tiles would leave the device idle, tiles are 64x64 and k is split among
// blocks; their float32 partial products, in the workspace, are added in a fixed order.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256, kVector = 4;  // elements of one load, and of a fragment's piece
constexpr int64_t kEnoughBlocks = 256, kLeastDepth = 256;  // to keep busy; to split k into
constexpr int64_t kRowsOfTiles = 8;         // tiles are visited in bands of so many rows

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }

template <class T> struct alignas(kVector * sizeof(T)) Pack { T v[kVector]; };

struct Shape { int64_t m, n, k; };
// How the product is cut into blocks.
struct Plan {
  int tile;               // rows of a block's tile of c
  int64_t splits, depth;  // parts of k, and elements in each; the last may be shorter
};

__host__ __device__ int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The first `count` of the four elements at p, and zeros. Aligned rows end with a whole pack.
template <class T, bool kAligned> __device__ Pack<T> fetch(const T* p, int count) {
  Pack<T> pack;
#pragma unroll
  for (int i = 0; i < kVector; ++i) pack.v[i] = from_float<T>(0.0f);
  if constexpr (kAligned) {
    if (count > 0) pack = *reinterpret_cast<const Pack<T>*>(p);
  } else {
#pragma unroll
    for (int i = 0; i < kVector; ++i) pack.v[i] = i < count ? p[i] : pack.v[i];
  }
  return pack;
}

// Where the block's tile starts: bands of rows are walked by columns, to share the cache.
template <int kRows, int kCols>
__device__ void tile_origin(const Shape& s, int64_t& row, int64_t& col) {
  const int64_t tile_rows = ceil_div(s.m, kRows), tile_cols = ceil_div(s.n, kCols);
  const int64_t size = kRowsOfTiles * tile_cols, band = blockIdx.x / size;
  const int64_t inside = blockIdx.x % size, left = tile_rows - band * kRowsOfTiles;
  const int64_t height = left < kRowsOfTiles ? left : kRowsOfTiles;
  row = (band * kRowsOfTiles + inside % height) * kRows;
  col = inside / height * kCols;
}

// A kTile x kTile tile over a part of k. Out is float where parts go to the workspace.
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
  tile_origin<kTile, kTile>(s, row0, col0);
  const int64_t k0 = blockIdx.y * depth;

  // What this thread moves: four elements along k of a, four along n of b.
  const int tid = threadIdx.x;
  const int a_row = tid / (kDepth / kVector), a_k = tid % (kDepth / kVector) * kVector;
  const int b_k = tid / (kTile / kVector), b_col = tid % (kTile / kVector) * kVector;
  // What it computes: 4 x 8 lanes reuse more of what they load than 2 x 16 would.
  const int lane = tid % 32, group = tid / 32;
  const int row_piece = (group / 2 * 4 + lane / 8) * kVector;
  const int col_piece = (group % 2 * 8 + lane % 8) * kVector;

  const T* a_from = a + (row0 + a_row) * s.k + k0 + a_k;
  const T* b_from = b + (k0 + b_k) * s.n + col0 + b_col;
  const bool a_inside = row0 + a_row < s.m;
  const int b_count = (int)(s.n - col0) - b_col;
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

#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ == 900
#define MATRIX_UNITS
// On Hopper's matrix units: groups of four warps multiply 64 rows by the block's columns, both
// read from shared memory, which is filled two steps ahead, past the registers. Its 16-byte chunks
// are swizzled in rows of 128 bytes, as the units expect: along k for a, along n for b.
namespace tensor {

constexpr int kStages = 3, kChunk = 8;                   // elements of 16 bytes
constexpr int kDeep = 64, kDeepChunks = kDeep / kChunk;  // elements of k in a step
constexpr int kLine = 128, kSlab = kDeep * kLine;        // bytes; a slab is 64 columns of b
constexpr int kCols = 128;                               // of a block's tile
template <int kRows> constexpr int kStage = kRows * kLine + kCols / 64 * kSlab;

__device__ unsigned place(int line, int chunk) { return line * kLine + (chunk ^ line % 8) * 16; }

// Moves a chunk from global to shared memory, or zeros.
__device__ void copy(unsigned to, const __half* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(inside ? 16 : 0));
}

// How the units find a matrix: its start, and the bytes between slabs and between eight lines.
__device__ uint64_t matrix_at(unsigned start) {
  return (uint64_t)1 << 62 | (uint64_t)(8 * kLine / 16) << 32 | (kSlab / 16) << 16 | start / 16;
}

#define SUMS_8(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), \
                  "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SUMS_64(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24), SUMS_8(i + 32), \
                   SUMS_8(i + 40), SUMS_8(i + 48), SUMS_8(i + 56)
#define FIRST_64 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"  \
  "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,"  \
  "%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

// sum += a @ b for 16 of k; it is done when it has been waited for.
__device__ void multiply(float (&sum)[64], uint64_t a, uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" FIRST_64
               "}, %64, %65, 1, 1, 1, 0, 1;" : SUMS_64(0) : "l"(a), "l"(b));
}

template <class T> struct alignas(2 * sizeof(T)) Pair { T x, y; };

// A block's tile of kRows x 128, with two threads a row.
template <class Out, int kRows>
__global__ __launch_bounds__(2 * kRows, 2) void products(const __half* __restrict__ a,
                                                         const __half* __restrict__ b,
                                                         Out* __restrict__ c, Shape s,
                                                         int64_t depth) {
  extern __shared__ __align__(1024) unsigned char memory[];
  constexpr int kBlock = 2 * kRows, kChunks = kCols / kChunk;
  int64_t row0, col0;
  tile_origin<kRows, kCols>(s, row0, col0);
  const int64_t k0 = blockIdx.y * depth;
  const int length = (int)(k0 + depth < s.k ? depth : s.k - k0);
  const unsigned shared = (unsigned)__cvta_generic_to_shared(memory);

  // Each thread copies the same chunk of every so many lines; the swizzle repeats after eight.
  constexpr int kHopA = kBlock / kDeepChunks, kHopB = kBlock / kChunks;
  const int row_a = threadIdx.x / kDeepChunks, chunk_a = threadIdx.x % kDeepChunks;
  const int row_b = threadIdx.x / kChunks, chunk_b = threadIdx.x % kChunks;
  const __half* from_a = a + (row0 + row_a) * s.k + k0 + chunk_a * kChunk;
  const __half* from_b = b + (k0 + row_b) * s.n + col0 + chunk_b * kChunk;
  const int64_t hop_a = kHopA * s.k, hop_b = kHopB * s.n;
  const int rows_a = (int)(s.m - row0) - row_a;
  int left_a = length - chunk_a * kChunk;
  int left_b = col0 + chunk_b * kChunk < s.n ? length - row_b : 0;
  const unsigned own_a = place(row_a, chunk_a);
  const unsigned own_b = kRows * kLine + chunk_b / 8 * kSlab + place(row_b, chunk_b % 8);
  const auto fill = [&](int stage) {
    const unsigned to = shared + stage * kStage<kRows>;
#pragma unroll
    for (int i = 0; i < kRows / kHopA; ++i) {
      copy(to + own_a + i * kHopA * kLine, from_a + i * hop_a, left_a > 0 && i * kHopA < rows_a);
    }
#pragma unroll
    for (int i = 0; i < kDeep / kHopB; ++i) {
      copy(to + own_b + i * kHopB * kLine, from_b + i * hop_b, i * kHopB < left_b);
    }
    asm volatile("cp.async.commit_group;");
    from_a += kDeep;
    from_b += kDeep * s.n;
    left_a -= kDeep;
    left_b -= kDeep;
  };

  float sums[kCols / 2] = {};
  for (int i = 0; i < kStages - 1; ++i) fill(i);
  for (int k = 0, stage = 0; k < length; k += kDeep, stage = (stage + 1) % kStages) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2));
    asm volatile("fence.proxy.async.shared::cta;");  // what was copied is for the units
    __syncthreads();
    fill((stage + kStages - 1) % kStages);  // read by products that all have waited for
    const unsigned tile = shared + stage * kStage<kRows>;
    const unsigned tile_a = tile + threadIdx.x / 128 * 64 * kLine, tile_b = tile + kRows * kLine;
    asm volatile("wgmma.fence.sync.aligned;");
#pragma unroll
    for (int step = 0; step < kDeep; step += 16) {
      multiply(sums, matrix_at(tile_a + step * 2), matrix_at(tile_b + step * kLine));
    }
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
  }
  asm volatile("cp.async.wait_all;");  // the last of them bring zeros
#pragma unroll
  for (int i = 0; i < kCols / 2; ++i) asm volatile("" : "+f"(sums[i]));  // not read before
  __syncthreads();

  // By way of shared memory, so that whole lines are written.
  constexpr int kPack = 16 / sizeof(Out), kPitch = kCols + kPack, kPacks = kCols / kPack;
  Out* staged = reinterpret_cast<Out*>(memory);
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kCols / 2; i += 2) {
    const int col = i / 4 * 8 + lane % 4 * 2;
    const Pair<Out> pair{from_float<Out>(sums[i]), from_float<Out>(sums[i + 1])};
    *reinterpret_cast<Pair<Out>*>(staged + (row + i % 4 / 2 * 8) * kPitch + col) = pair;
  }
  __syncthreads();
  Out* part = c + blockIdx.y * s.m * s.n;
  for (int i = threadIdx.x; i < kRows * kPacks; i += kBlock) {
    const int64_t r = row0 + i / kPacks, col = col0 + i % kPacks * kPack;
    const auto* from = reinterpret_cast<uint4*>(staged + i / kPacks * kPitch + i % kPacks * kPack);
    if (r < s.m && col < s.n) *reinterpret_cast<uint4*>(part + r * s.n + col) = *from;
  }
}

template <class Out, int kRows>
void start(const __half* a, const __half* b, Out* c, const Shape& s, int64_t splits,
           int64_t depth, hipStream_t stream) {
  const auto kernel = products<Out, kRows>;
  const int bytes = kStages * kStage<kRows>;
  const auto most = hipFuncAttributeMaxDynamicSharedMemorySize;
  if (hipFuncSetAttribute((const void*)kernel, most, bytes) != hipSuccess) return;
  const int64_t tiles = ceil_div(s.m, kRows) * ceil_div(s.n, kCols);
  const dim3 grid((unsigned)tiles, (unsigned)splits);
  kernel<<<grid, dim3(2 * kRows), bytes, stream>>>(a, b, c, s, depth);
}

}  // namespace tensor
#endif

// c = the sum of the partial products, always in the same order.
template <class T>
__global__ __launch_bounds__(kThreads) void add_parts(const float* __restrict__ parts,
                                                      T* __restrict__ c, int64_t elements,
                                                      int64_t splits) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  float sum = 0.0f;
  for (int64_t part = 0; part < splits && i < elements; ++part) sum += parts[part * elements + i];
  if (i < elements) c[i] = from_float<T>(sum);
}

Plan plan_for(const Shape& s, bool matrix_units) {
  if (ceil_div(s.m, 128) * ceil_div(s.n, 128) >= kEnoughBlocks / 2) return {128, 1, s.k};
  int64_t splits = kEnoughBlocks / (ceil_div(s.m, 64) * ceil_div(s.n, matrix_units ? 128 : 64));
  if (splits > s.k / kLeastDepth) splits = s.k / kLeastDepth;
  if (splits < 2) return {64, 1, s.k};
  const int64_t unit = matrix_units ? 64 : kVector;  // rows of a stay aligned in each part
  const int64_t depth = ceil_div(ceil_div(s.k, splits), unit) * unit;
  return {64, ceil_div(s.k, depth), depth};
}

template <class T, class Out>
void launch(const T* a, const T* b, Out* c, const Shape& s, const Plan& plan, bool fast,
            hipStream_t stream) {
#ifdef MATRIX_UNITS
  if constexpr (sizeof(T) == 2) {
    const auto start = plan.tile == 64 ? tensor::start<Out, 64> : tensor::start<Out, 128>;
    if (fast) return start(a, b, c, s, plan.splits, plan.depth, stream);
  }
#endif
  const auto aligned = [](const auto* p) { return (uintptr_t)p % (kVector * sizeof(*p)) == 0; };
  const bool vectors =
      s.k % kVector == 0 && s.n % kVector == 0 && aligned(a) && aligned(b) && aligned(c);
  const int64_t tiles = ceil_div(s.m, plan.tile) * ceil_div(s.n, plan.tile);
  const dim3 grid((unsigned)tiles, (unsigned)plan.splits);
  const auto start = [&](auto kernel) {
    kernel<<<grid, dim3(kThreads), 0, stream>>>(a, b, c, s, plan.depth);
  };
  if (plan.tile == 64) {
    start(vectors ? gemm_tiles<T, Out, 64, true> : gemm_tiles<T, Out, 64, false>);
  } else if constexpr (sizeof(Out) == sizeof(T)) {  // large tiles are never split
    start(vectors ? gemm_tiles<T, Out, 128, true> : gemm_tiles<T, Out, 128, false>);
  }
}

size_t workspace(int64_t m, int64_t n, int64_t k) {
  const int64_t fast = plan_for({m, n, k}, true).splits, plain = plan_for({m, n, k}, false).splits;
  const int64_t most = fast > plain ? fast : plain;
  return most > 1 ? most * m * n * sizeof(float) : 0;
}

template <class T>
hipError_t gemm(const T* a, const T* b, T* c, const Shape& s, void* workspace,
                hipStream_t stream) {
  bool fast = false;
#ifdef MATRIX_UNITS
  const uintptr_t places = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c;
  fast = sizeof(T) == 2 && s.k % 8 == 0 && s.n % 8 == 0 && places % 16 == 0;
#endif
  const Plan plan = plan_for(s, fast);
  float* parts = static_cast<float*>(workspace);
  if (plan.splits == 1) {
    launch(a, b, c, s, plan, fast, stream);
  } else {
    launch(a, b, parts, s, plan, fast, stream);
    const dim3 blocks((unsigned)ceil_div(s.m * s.n, kThreads));
    add_parts<T><<<blocks, dim3(kThreads), 0, stream>>>(parts, c, s.m * s.n, plan.splits);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" size_t gemm_f32_workspace(int64_t m, int64_t n, int64_t k) { return workspace(m, n, k); }
extern "C" size_t gemm_f16_workspace(int64_t m, int64_t n, int64_t k) { return workspace(m, n, k); }

extern "C" hipError_t gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                               int64_t k, void* workspace, hipStream_t stream) {
  return gemm(a, b, c, {m, n, k}, workspace, stream);
}

extern "C" hipError_t gemm_f16(const __half* a, const __half* b, __half* c, int64_t m, int64_t n,
                               int64_t k, void* workspace, hipStream_t stream) {
  return gemm(a, b, c, {m, n, k}, workspace, stream);
}
