// Weighted sums of rows of an embedding table. A team of lanes holds a pack of 16 bytes of a row
// each, has kRows rows in flight, and knows those that follow. Where there are too few bags to fill
// the device, the teams of a block share a bag, and their sums are added in a fixed order. Where
// rows are not aligned, a pack is one element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kRows = 4;
constexpr int kResident = 1024;  // threads of a processor that should have work

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// One element, or as many as 16 bytes hold. They are moved as `bits`: a compiler may cut a copy of
// the elements into pieces.
template <class T, int kPack> union Pack {
  uint4 bits;
  T v[kPack];
};
template <class T> union Pack<T, 1> {
  T bits;
  T v[1];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

// The next rows of a bag: where they lie, and their weights.
struct Entries {
  int32_t row[kRows];
  float weight[kRows];

  __device__ void read(const int64_t* id, const float* weights, int64_t begin, int64_t end) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (begin + i >= end) continue;
      row[i] = (int32_t)id[begin + i];
      weight[i] = weights[begin + i];
    }
  }
};

template <class T, int kPack, bool kShared>
__global__ __launch_bounds__(kThreads) void sum_bags(
    const T* __restrict__ table, const int64_t* __restrict__ id, const float* __restrict__ weight,
    const int64_t* __restrict__ offset, T* __restrict__ y, int64_t bags, int cols, int lanes) {
  __shared__ float partial[kShared ? kPack : 1][kThreads];
  const int lane = threadIdx.x % lanes, team = threadIdx.x / lanes, teams = kThreads / lanes;
  const int64_t bag = kShared ? blockIdx.x : (int64_t)blockIdx.x * teams + team;
  if (bag >= bags) return;
  int64_t begin = offset[bag], end = offset[bag + 1];
  if constexpr (kShared) {
    const int64_t of_team = (end - begin + teams - 1) / teams;
    begin += team * of_team;
    if (begin + of_team < end) end = begin + of_team;
  }

  for (int base = 0; base < cols; base += lanes * kPack) {
    const int col = base + lane * kPack;
    float sums[kPack] = {};
    if (col < cols) {
      Entries next;
      next.read(id, weight, begin, end);
      for (int64_t entry = begin; entry < end; entry += kRows) {
        const Entries present = next;
        Pack<T, kPack> packs[kRows];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          if (entry + i >= end) continue;
          packs[i] = read<T, kPack>(table + (int64_t)present.row[i] * cols + col);
        }
        next.read(id, weight, entry + kRows, end);
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          if (entry + i >= end) continue;
#pragma unroll
          for (int j = 0; j < kPack; ++j) sums[j] += present.weight[i] * to_float(packs[i].v[j]);
        }
      }
    }
    if constexpr (kShared) {
      if (base > 0) __syncthreads();
#pragma unroll
      for (int j = 0; j < kPack; ++j) partial[j][threadIdx.x] = sums[j];
      __syncthreads();
      if (team > 0) continue;
      for (int t = 1; t < teams; ++t) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) sums[j] += partial[j][t * lanes + lane];
      }
    }
    if (col >= cols) continue;
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) result.v[j] = from_float<T>(sums[j]);
    write<T, kPack>(y + bag * cols + col, result);
  }
}

template <class T, int kPack>
void launch(const T* table, const int64_t* id, const float* weight, const int64_t* offset, T* y,
            int cols, int64_t bags, hipStream_t stream) {
  int device = 0, processors = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  int lanes = 8;
  while (lanes < kThreads && lanes * kPack < cols) lanes *= 2;
  const int teams = kThreads / lanes;
  const bool shared = teams > 1 && bags * lanes < (int64_t)processors * kResident;
  const int64_t blocks = shared ? bags : (bags + teams - 1) / teams;
  const auto kernel = shared ? sum_bags<T, kPack, true> : sum_bags<T, kPack, false>;
  kernel<<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(table, id, weight, offset, y, bags,
                                                                cols, lanes);
}

template <class T>
hipError_t embedding_bag(const T* table, const int64_t* id, const float* weight,
                         const int64_t* offset, T* y, int64_t vocab, int64_t cols, int64_t count,
                         int64_t bags, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const bool aligned = cols % kPack == 0 && ((uintptr_t)table | (uintptr_t)y) % 16 == 0;
  const auto start = aligned ? launch<T, kPack> : launch<T, 1>;
  start(table, id, weight, offset, y, (int)cols, bags, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t embedding_bag_f32(const float* table, const int64_t* id, const float* weight,
                                        const int64_t* offset, float* y, int64_t vocab,
                                        int64_t cols, int64_t count, int64_t bags,
                                        hipStream_t stream) {
  return embedding_bag(table, id, weight, offset, y, vocab, cols, count, bags, stream);
}

extern "C" hipError_t embedding_bag_f16(const __half* table, const int64_t* id, const float* weight,
                                        const int64_t* offset, __half* y, int64_t vocab,
                                        int64_t cols, int64_t count, int64_t bags,
                                        hipStream_t stream) {
  return embedding_bag(table, id, weight, offset, y, vocab, cols, count, bags, stream);
}

extern "C" hipError_t embedding_bag_bf16(const __hip_bfloat16* table, const int64_t* id,
                                         const float* weight, const int64_t* offset,
                                         __hip_bfloat16* y, int64_t vocab, int64_t cols,
                                         int64_t count, int64_t bags, hipStream_t stream) {
  return embedding_bag(table, id, weight, offset, y, vocab, cols, count, bags, stream);
}
