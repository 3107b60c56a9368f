// Kernels with one mistake each, and kernels that only look as if they had one. A line that the
// sanitizer has to name ends with a mark, the name of its function's mistake.
#include <hip/hip_runtime.h>

#define LAUNCH(kernel, grid, block, shared, ...)               \
  kernel<<<grid, block, shared>>>(__VA_ARGS__);                \
  return hipDeviceSynchronize()

constexpr int kThreads = 128;

// --- addresses ---

__global__ void write_past_tensor(float* out) {
  out[threadIdx.x] = 1.0f;  // write_past_tensor
}
extern "C" hipError_t run_write_past_tensor(const float*, float* out, int64_t) {
  LAUNCH(write_past_tensor, 1, kThreads + 1, 0, out);
}

__global__ void read_before_tensor(const float* in, float* out) {
  const int i = threadIdx.x;
  out[i] = in[i] + in[i - 1];  // read_before_tensor
}
extern "C" hipError_t run_read_before_tensor(const float* in, float* out, int64_t) {
  LAUNCH(read_before_tensor, 1, kThreads, 0, in, out);
}

__global__ void read_past_shared(const float* in, float* out) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const float* next = tile + threadIdx.x + 1;
  out[threadIdx.x] = *next;  // read_past_shared
}
extern "C" hipError_t run_read_past_shared(const float* in, float* out, int64_t) {
  LAUNCH(read_past_shared, 1, kThreads, 0, in, out);
}

__global__ void read_before_shared(const float* in, float* out) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const float* previous = tile + threadIdx.x - 1;
  out[threadIdx.x] = *previous;  // read_before_shared
}
extern "C" hipError_t run_read_before_shared(const float* in, float* out, int64_t) {
  LAUNCH(read_before_shared, 1, kThreads, 0, in, out);
}

template <int N>
__device__ __noinline__ float neighbour(float value) {
  __shared__ float tile[N];
  tile[threadIdx.x] = value;
  __syncthreads();
  const float* next = tile + threadIdx.x + 1;
  return *next;  // read_past_shared_of_template
}
__global__ void read_past_shared_of_template(const float* in, float* out) {
  out[threadIdx.x] = neighbour<kThreads>(in[threadIdx.x]);
}
extern "C" hipError_t run_read_past_shared_of_template(const float* in, float* out, int64_t) {
  LAUNCH(read_past_shared_of_template, 1, kThreads, 0, in, out);
}

__global__ void write_past_dynamic(const float* in, float* out) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = in[threadIdx.x];  // write_past_dynamic
  out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" hipError_t run_write_past_dynamic(const float* in, float* out, int64_t) {
  LAUNCH(write_past_dynamic, 1, kThreads, (kThreads - 1) * sizeof(float), in, out);
}

__global__ void write_past_local(float* out, int64_t n) {
  float last[4] = {};
  for (int i = 0; i < n; ++i) last[i] = i;  // write_past_local
  out[threadIdx.x] = last[threadIdx.x & 3];
}
extern "C" hipError_t run_write_past_local(const float*, float* out, int64_t) {
  LAUNCH(write_past_local, 1, kThreads, 0, out, 5);
}

// --- what nobody has written ---

__global__ void read_output(float* out) {
  out[threadIdx.x] += 1.0f;  // read_output
}
extern "C" hipError_t run_read_output(const float*, float* out, int64_t) {
  LAUNCH(read_output, 1, kThreads, 0, out);
}

__global__ void read_unwritten_shared(const float* in, float* out) {
  __shared__ float tile[kThreads];
  if (threadIdx.x != 7) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // read_unwritten_shared
}
extern "C" hipError_t run_read_unwritten_shared(const float* in, float* out, int64_t) {
  LAUNCH(read_unwritten_shared, 1, kThreads, 0, in, out);
}

// --- races ---

__device__ float sum_of(const float* tile) {
  float sum = 0.0f;
  for (int i = 0; i < kThreads; ++i) sum += tile[i];  // missing_barrier
  return sum;
}
__global__ void missing_barrier(const float* in, float* out) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x] = in[threadIdx.x];  // missing_barrier
  __threadfence_block();
  if (threadIdx.x == kThreads - 1) out[0] = sum_of(tile);
  if (threadIdx.x != 0) out[threadIdx.x] = 0.0f;
}
extern "C" hipError_t run_missing_barrier(const float* in, float* out, int64_t) {
  LAUNCH(missing_barrier, 1, kThreads, 0, in, out);
}

__global__ void barrier_after_only(const float* in, float* out) {
  __shared__ float tile[kThreads];
  float sum = 0.0f;
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = in[threadIdx.x] * round;  // barrier_after_only
    __syncthreads();
    sum += tile[(threadIdx.x + 1) % kThreads];  // barrier_after_only
  }
  out[threadIdx.x] = sum;
}
extern "C" hipError_t run_barrier_after_only(const float* in, float* out, int64_t) {
  LAUNCH(barrier_after_only, 1, kThreads, 0, in, out);
}

__global__ void adds_without_atomics(const float* in, float* out) {
  if (blockIdx.x == 0) out[threadIdx.x] = 0.0f;  // adds_without_atomics
  if (blockIdx.x != 0) out[threadIdx.x] += in[threadIdx.x];  // adds_without_atomics
}
extern "C" hipError_t run_adds_without_atomics(const float* in, float* out, int64_t) {
  LAUNCH(adds_without_atomics, 2, kThreads, 0, in, out);
}

// --- barriers ---

__global__ void barrier_in_both_branches(const float* in, float* out) {
  if (threadIdx.x < 3) {
    __syncthreads();  // barrier_in_both_branches
    out[threadIdx.x] = in[threadIdx.x];
  } else {
    __syncthreads();  // barrier_in_both_branches
    out[threadIdx.x] = 0.0f;
  }
}
extern "C" hipError_t run_barrier_in_both_branches(const float* in, float* out, int64_t) {
  LAUNCH(barrier_in_both_branches, 1, kThreads, 0, in, out);
}

__global__ void barrier_after_return(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 5) return;
  __syncthreads();  // barrier_after_return
}
extern "C" hipError_t run_barrier_after_return(const float* in, float* out, int64_t) {
  LAUNCH(barrier_after_return, 1, kThreads, 0, in, out);
}

// --- correct ---

// A shared variable of a function that a linker may merge with another file's.
template <class T, int N>
__device__ __noinline__ T mirrored(T value) {
  __shared__ T tile[N];
  tile[threadIdx.x] = value;
  __syncthreads();
  return tile[N - 1 - threadIdx.x];
}
__global__ void shared_in_template(const float* in, float* out) {
  out[threadIdx.x] = mirrored<float, kThreads>(in[threadIdx.x]);
}
extern "C" hipError_t run_shared_in_template(const float* in, float* out, int64_t) {
  LAUNCH(shared_in_template, 2, kThreads, 0, in, out);
}

// Each instance has variables of its own, of its own size.
template <int N>
__global__ void tile_of(const float* in, float* out) {
  __shared__ float tile[N];
  if (threadIdx.x < N) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const float* first = tile;
  out[threadIdx.x] = first[threadIdx.x % N];
}
extern "C" hipError_t run_tiles_of_two_sizes(const float* in, float* out, int64_t) {
  tile_of<8><<<1, kThreads>>>(in, out);
  LAUNCH(tile_of<kThreads>, 1, kThreads, 0, in, out);
}

// A wave that orders its own accesses.
__global__ void wave_reduction(const float* in, float* out) {
  __shared__ float tile[kThreads];
  const int lane = threadIdx.x % warpSize;
  tile[threadIdx.x] = in[threadIdx.x];
  for (int step = warpSize / 2; step > 0; step /= 2) {
    __syncwarp();
    const float other = lane < step ? tile[threadIdx.x + step] : 0.0f;
    __syncwarp();
    if (lane < step) tile[threadIdx.x] += other;
  }
  float value = tile[threadIdx.x];
  value = __shfl(value, 0);
  out[threadIdx.x] = value;
}
extern "C" hipError_t run_wave_reduction(const float* in, float* out, int64_t) {
  LAUNCH(wave_reduction, 2, kThreads, 0, in, out);
}

// The last block sums what the others have left.
__device__ unsigned finished;
__device__ float partial[64];
__global__ void last_block(const float* in, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    last = atomicAdd(&finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  float sum = 0.0f;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  out[threadIdx.x] = sum;
  if (threadIdx.x == 0) finished = 0;
}
extern "C" hipError_t run_last_block(const float* in, float* out, int64_t) {
  LAUNCH(last_block, 8, kThreads, 0, in, out);
}

__global__ void histogram(const float* in, float* out) {
  __shared__ int bins[kThreads];
  bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[static_cast<int>(in[threadIdx.x]) & 7], 1);
  __syncthreads();
  if (blockIdx.x == 0) out[threadIdx.x] = bins[threadIdx.x];
}
extern "C" hipError_t run_histogram(const float* in, float* out, int64_t) {
  LAUNCH(histogram, 4, kThreads, 0, in, out);
}

__global__ void same_value(float* out) {
  __shared__ int flag;
  flag = 1;
  __syncthreads();
  out[threadIdx.x] = flag;
}
extern "C" hipError_t run_same_value(const float*, float* out, int64_t) {
  LAUNCH(same_value, 2, kThreads, 0, out);
}

__global__ void dynamic_tiles(const float4* in, float4* out) {
  extern __shared__ float4 wide[];
  const int threads = blockDim.x;
  wide[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = wide[threads - 1 - threadIdx.x];
}
extern "C" hipError_t run_dynamic_tiles(const float* in, float* out, int64_t) {
  LAUNCH(dynamic_tiles, 1, kThreads / 4, kThreads * sizeof(float),
         reinterpret_cast<const float4*>(in), reinterpret_cast<float4*>(out));
}

// A workspace that one kernel writes and the next one reads.
__global__ void fill(float* scratch) { scratch[threadIdx.x] = threadIdx.x; }
__global__ void copy(const float* scratch, float* out) { out[threadIdx.x] = scratch[threadIdx.x]; }
extern "C" hipError_t run_two_kernels(const float*, float* out, int64_t) {
  float* scratch = nullptr;
  if (hipMalloc(&scratch, kThreads * sizeof(float)) != hipSuccess) return hipErrorOutOfMemory;
  fill<<<1, kThreads>>>(scratch);
  copy<<<1, kThreads>>>(scratch, out);
  const hipError_t error = hipDeviceSynchronize();
  (void)hipFree(scratch);
  return error;
}
