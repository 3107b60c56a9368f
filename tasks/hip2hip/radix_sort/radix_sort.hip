// A stable radix sort of pairs, four bits a pass: twelve passes over keys of 48 bits, each with a
// histogram of every block, the sums of all histograms, and a scatter.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kBits = 4;
constexpr int kDigits = 1 << kBits;
constexpr int kKeyBits = 48;

// Bits that rise with a float: those of positive ones with the sign set, of negative ones inverted.
__device__ uint32_t rising(uint32_t bits) { return bits >> 31 ? ~bits : bits | 0x80000000u; }

__device__ uint32_t original(uint32_t bits) { return bits >> 31 ? bits & 0x7FFFFFFFu : ~bits; }

__global__ void make_keys(const int32_t* tile, const float* depth, const int32_t* splat,
                          uint64_t* key, int32_t* value, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < n) {
    key[i] = (uint64_t)tile[i] << 32 | rising(__float_as_uint(depth[i]));
    value[i] = splat[i];
  }
}

__global__ void histogram(const uint64_t* key, int32_t* counts, int shift, int64_t n) {
  __shared__ int32_t own[kDigits];
  if (threadIdx.x < kDigits) {
    own[threadIdx.x] = 0;
  }
  __syncthreads();
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < n) {
    atomicAdd(&own[key[i] >> shift & (kDigits - 1)], 1);
  }
  __syncthreads();
  if (threadIdx.x < kDigits) {
    counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
  }
}

// One block turns counts into the sums of all counts before them.
__global__ void sum_up(int32_t* counts, int64_t total) {
  __shared__ int32_t sums[kThreads];
  const int64_t share = (total + kThreads - 1) / kThreads;
  const int64_t first = threadIdx.x * share;
  const int64_t last = first + share < total ? first + share : total;
  int32_t own = 0;
  for (int64_t i = first; i < last; ++i) {
    own += counts[i];
  }
  sums[threadIdx.x] = own;
  __syncthreads();
  for (int back = 1; back < kThreads; back *= 2) {
    const int32_t before = threadIdx.x >= back ? sums[threadIdx.x - back] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  int32_t running = sums[threadIdx.x] - own;
  for (int64_t i = first; i < last; ++i) {
    const int32_t count = counts[i];
    counts[i] = running;
    running += count;
  }
}

__global__ void scatter(const uint64_t* key, const int32_t* value, const int32_t* before,
                        uint64_t* to_key, int32_t* to_value, int shift, int64_t n) {
  __shared__ uint8_t digits[kThreads];
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int digit = i < n ? (int)(key[i] >> shift & (kDigits - 1)) : 0;
  digits[threadIdx.x] = (uint8_t)digit;
  __syncthreads();
  if (i < n) {
    int32_t rank = 0;
    for (int other = 0; other < threadIdx.x; ++other) {
      rank += digits[other] == digit ? 1 : 0;
    }
    const int64_t to = before[(int64_t)digit * gridDim.x + blockIdx.x] + rank;
    to_key[to] = key[i];
    to_value[to] = value[i];
  }
}

__global__ void unpack(const uint64_t* key, const int32_t* value, int32_t* order,
                       float* sorted_depth, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i < n) {
    order[i] = value[i];
    sorted_depth[i] = __uint_as_float(original((uint32_t)key[i]));
  }
}

size_t radix_sort_workspace(int64_t n) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  return 2 * n * (sizeof(uint64_t) + sizeof(int32_t)) + blocks * kDigits * sizeof(int32_t);
}

hipError_t radix_sort(const int32_t* tile, const float* depth, const int32_t* splat, int32_t* order,
                      float* sorted_depth, int64_t n, void* workspace, hipStream_t stream) {
  const dim3 blocks((unsigned)((n + kThreads - 1) / kThreads));
  const dim3 threads(kThreads);
  uint64_t* key = (uint64_t*)workspace;
  uint64_t* to_key = key + n;
  int32_t* value = (int32_t*)(to_key + n);
  int32_t* to_value = value + n;
  int32_t* counts = to_value + n;
  make_keys<<<blocks, threads, 0, stream>>>(tile, depth, splat, key, value, n);
  for (int shift = 0; shift < kKeyBits; shift += kBits) {
    histogram<<<blocks, threads, 0, stream>>>(key, counts, shift, n);
    sum_up<<<dim3(1), threads, 0, stream>>>(counts, (int64_t)blocks.x * kDigits);
    scatter<<<blocks, threads, 0, stream>>>(key, value, counts, to_key, to_value, shift, n);
    uint64_t* const old_key = key;
    int32_t* const old_value = value;
    key = to_key;
    value = to_value;
    to_key = old_key;
    to_value = old_value;
  }
  unpack<<<blocks, threads, 0, stream>>>(key, value, order, sorted_depth, n);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t radix_sort_f32(const int32_t* tile, const float* depth, const int32_t* splat,
                                     int32_t* order, float* sorted_depth, int64_t n,
                                     void* workspace, hipStream_t stream) {
  return radix_sort(tile, depth, splat, order, sorted_depth, n, workspace, stream);
}

extern "C" size_t radix_sort_f32_workspace(int64_t n) { return radix_sort_workspace(n); }
