// What lanes say to each other, converged and diverged. One wave unless said otherwise.
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr unsigned long long kEveryLane = ~0ull;

__global__ void shuffles(int* out, int width) {
  const int lane = threadIdx.x;
  int* row = out + lane * 8;
  row[0] = __shfl(lane, 5, width);
  row[1] = __shfl_up(lane, 3, width);
  row[2] = __shfl_down(lane, 3, width);
  row[3] = __shfl_xor(lane, 5, width);
  row[4] = __shfl_sync(kEveryLane, lane, 5, width);
  row[5] = __shfl_up_sync(kEveryLane, lane, 3, width);
  row[6] = __shfl_down_sync(kEveryLane, lane, 3, width);
  row[7] = __shfl_xor_sync(kEveryLane, lane, 5, width);
}

__global__ void votes(unsigned long long* out) {
  const int lane = threadIdx.x;
  unsigned long long* row = out + lane * 6;
  row[0] = __ballot(lane % 3 == 0);
  row[1] = __any(lane == 7) * 2 + __all(lane < warpSize);
  row[2] = __any(lane > warpSize) * 2 + __all(lane != 7);
  row[3] = __activemask();
  row[4] = __ballot_sync(kEveryLane, lane % 5 == 0);
  row[5] = __match_any_sync(kEveryLane, lane % 4);
}

__global__ void reductions(double* out) {
  const int lane = threadIdx.x;
  double* row = out + lane * 6;
  row[0] = __reduce_add_sync(kEveryLane, lane);
  row[1] = __reduce_max_sync(kEveryLane, lane * 0.5);
  row[2] = __reduce_min_sync(kEveryLane, -lane);
  row[3] = __reduce_xor_sync(kEveryLane, static_cast<unsigned>(lane));
  int equal = 0;
  row[4] = static_cast<double>(__match_all_sync(kEveryLane, 3, &equal) != 0);
  row[5] = equal + __builtin_amdgcn_readfirstlane(lane);
}

// The halves of the wave take different ways; a quarter of one leaves for good.
__global__ void divergence(int* out) {
  const int lane = threadIdx.x;
  int value = lane;
  if (lane < 16) {
    value += __shfl_xor(value, 8);
  } else if (lane < 20) {
    return;
  }
  value += __shfl_xor(value, 1);
  __syncthreads();
  out[lane] = value;
}

// Within each branch only the lanes of that branch meet.
__global__ void branch_masks(unsigned long long* out) {
  const int lane = threadIdx.x;
  if (lane % 2 == 0) {
    out[lane] = __ballot(1);
  } else {
    out[lane] = __activemask();
  }
}

// A lane makes as many rounds as its number says.
__global__ void uneven_loops(int* out) {
  const int lane = threadIdx.x;
  int seen = 0;
  for (int i = 0; i < lane % 8; ++i) seen += __popcll(__ballot(1));
  out[lane] = seen;
}

__device__ float wave_sum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down(value, offset);
  return value;
}

__global__ void block_sum(const float* in, float* out, int n) {
  __shared__ float partial[1024 / 32];
  const int lane = threadIdx.x % warpSize;
  const int wave = threadIdx.x / warpSize;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
  sum = wave_sum(sum);
  if (lane == 0) partial[wave] = sum;
  __syncthreads();
  const int waves = (blockDim.x + warpSize - 1) / warpSize;
  sum = threadIdx.x < waves ? partial[lane] : 0.0f;
  if (wave == 0) sum = wave_sum(sum);
  if (threadIdx.x == 0) *out = sum;
}

__global__ void tiles(int* out) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  int sum = block.thread_rank();
  for (int offset = 4; offset > 0; offset /= 2) sum += tile.shfl_xor(sum, offset);
  int* row = out + block.thread_rank() * 5;
  row[0] = sum;
  row[1] = tile.thread_rank();
  row[2] = tile.meta_group_rank();
  row[3] = static_cast<int>(tile.ballot(tile.thread_rank() < 3));
  row[4] = tile.shfl(static_cast<int>(block.thread_rank()), 2);
  block.sync();
}

// Tiles that make different numbers of rounds: each waits for its own lanes only.
__global__ void uneven_tiles(int* out) {
  const auto tile = cg::tiled_partition<4>(cg::this_thread_block());
  int sum = 0;
  for (unsigned i = 0; i <= tile.meta_group_rank(); ++i) sum += tile.shfl(int(threadIdx.x), i % 4);
  out[threadIdx.x] = sum;
}

__global__ void wide_types(double* doubles, long long* integers) {
  doubles[threadIdx.x] = __shfl_xor(threadIdx.x * 0.25, 1);
  integers[threadIdx.x] = __shfl_xor(static_cast<long long>(threadIdx.x) << 40, 1);
}

// One lane names all others, which wait at the barrier: as on a GPU whose lanes run in lock-step,
// it does without them.
__global__ void name_absent_lanes(int* out) {
  if (threadIdx.x == 0) out[0] = __shfl_sync(kEveryLane, 17, 0);
  __syncthreads();
  if (threadIdx.x != 0) out[threadIdx.x] = out[0];
}

// The first four lanes meet at the first line, though two of them come from a branch below it.
__global__ void wait_for_named_lanes(int* out) {
  const int lane = threadIdx.x;
  const unsigned long long four = 0xf;
  int value = lane;
  for (int round = 0; round < 2; ++round) {
    if (lane < 4 && (lane < 2 || round == 1)) value += __shfl_xor_sync(four, value, 3);
    if (lane >= 2 && lane < 4 && round == 0) value += __shfl_xor_sync(four & ~3ull, value, 1);
    if (lane < 2) break;
  }
  out[lane] = value;
}

__global__ void leave_self_out() { __shfl_sync(static_cast<unsigned long long>(1), 1, 0); }

#define LAUNCHER(kernel, T)                       \
  extern "C" hipError_t launch_##kernel(T* out) { \
    kernel<<<1, warpSize>>>(out);                 \
    return hipGetLastError();                     \
  }
LAUNCHER(votes, unsigned long long)
LAUNCHER(reductions, double)
LAUNCHER(divergence, int)
LAUNCHER(branch_masks, unsigned long long)
LAUNCHER(uneven_loops, int)
LAUNCHER(name_absent_lanes, int)
LAUNCHER(wait_for_named_lanes, int)

extern "C" {

int wave_size() { return warpSize; }

hipError_t launch_shuffles(int* out, int width) {
  shuffles<<<1, warpSize>>>(out, width);
  return hipGetLastError();
}

hipError_t launch_block_sum(const float* in, float* out, int n, int threads) {
  block_sum<<<1, threads>>>(in, out, n);
  return hipGetLastError();
}

hipError_t launch_tiles(int* out, int threads) {
  tiles<<<1, threads>>>(out);
  return hipGetLastError();
}

hipError_t launch_uneven_tiles(int* out, int threads) {
  uneven_tiles<<<1, threads>>>(out);
  return hipGetLastError();
}

hipError_t launch_wide_types(double* doubles, long long* integers, int threads) {
  wide_types<<<1, threads>>>(doubles, integers);
  return hipGetLastError();
}

hipError_t launch_leave_self_out() {
  leave_self_out<<<1, warpSize>>>();
  return hipGetLastError();
}

}
