// Means and largest values along the middle axis, in one pass over x. A slab is the size * inner
// elements of one index of the outer axis:
//
//  * short slabs: a block brings several to shared memory, where lanes sum them up;
//  * long slabs of few columns: a slab is taken as a line of packs of 16 bytes; threads go along it
//    in steps after which their elements belong to the same columns again;
//  * else: a thread has a pack of columns and walks down.
//
// Long slabs are cut into parts, as many as fill the device; a second kernel puts their results
// together. All orders are fixed. Shuffles stay within 32 lanes: one source for waves of 32 and 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;              // lanes that reduce by shuffles, also in waves of 64
constexpr int kThreads = 256;
constexpr int kShortThreads = 128;     // of blocks that bring short slabs
constexpr int kItems = 7;              // packs that each of them brings
constexpr int kShortSlab = 4096;       // bytes
constexpr int kFewColumns = 128;       // at most kThreads
constexpr int kResident = 3;           // blocks of a processor
constexpr int64_t kMostBlocks = 2048;  // of slabs that are cut into parts

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

// What is known of a result: the sum and the largest value of some of its elements. `rest` is what
// rounding took from the sum, as elements may be far larger than their mean.
struct Sum {
  float sum, rest, most;
  __device__ void add(float value) {
    const float next = sum + value, added = next - sum;
    rest += (sum - (next - added)) + (value - added);
    sum = next;
  }
  __device__ void take(float value) {
    add(value);
    most = fmaxf(most, fabsf(value));
  }
  // Four elements: those of 16 bits have so few digits that a sum of four loses next to nothing.
  template <class T> __device__ void take(T a, T b, T c, T d) {
    const float first = to_float(a), second = to_float(b), third = to_float(c);
    const float fourth = to_float(d);
    if constexpr (sizeof(T) == 4) {
      add(first), add(second), add(third), add(fourth);
    } else {
      add((first + second) + (third + fourth));
    }
    const float larger = fmaxf(fabsf(first), fabsf(second));
    most = fmaxf(fmaxf(most, larger), fmaxf(fabsf(third), fabsf(fourth)));
  }
  __device__ void join(const Sum& other) {
    add(other.sum);
    rest += other.rest;
    most = fmaxf(most, other.most);
  }
  __device__ Sum of_lane(int distance) const {
    return Sum{__shfl_xor(sum, distance, kWave), __shfl_xor(rest, distance, kWave),
               __shfl_xor(most, distance, kWave)};
  }
};

// Where sums go: to the workspace, or to the outputs, if a slab is not cut.
template <class T> struct Results {
  float* mean;
  T* most;
  Sum* parts;  // [part, result]
  int64_t count;
  float size;

  __device__ void finish(int64_t result, const Sum& sum) const {
    mean[result] = (sum.sum + sum.rest) / size;
    most[result] = from_float<T>(sum.most);
  }
  __device__ void put(int64_t result, int part, const Sum& sum) const {
    if (parts != nullptr) {
      parts[part * count + result] = sum;
    } else {
      finish(result, sum);
    }
  }
};

// `slabs` slabs a block, each result by `lanes` lanes.
template <class T, bool kAligned>
__global__ __launch_bounds__(kShortThreads) void short_slabs(
    const T* __restrict__ x, Results<T> results, int64_t outer, int size, int inner, int slabs,
    int lanes) {
  constexpr int kPack = 16 / sizeof(T);
  __shared__ Pack<T, kPack> memory[kShortThreads * kItems];
  const int64_t slab = (int64_t)blockIdx.x * slabs;
  const int count = outer - slab < slabs ? (int)(outer - slab) : slabs;
  const int64_t begin = slab * size * inner, end = begin + (int64_t)count * size * inner;
  const int lead = kAligned ? (int)(begin % kPack) : 0;  // in the first pack
  T* const staged = reinterpret_cast<T*>(memory);
  if constexpr (kAligned) {
    Pack<T, kPack> packs[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int64_t place = begin - lead + (i * kShortThreads + threadIdx.x) * kPack;
      if (place + kPack <= outer * size * inner && place < end) {
        packs[i] = read<T, kPack>(x + place);
      }
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int64_t place = begin - lead + (i * kShortThreads + threadIdx.x) * kPack;
      if (place >= end) continue;
      if (place + kPack <= outer * size * inner) {
        memory[i * kShortThreads + threadIdx.x].bits = packs[i].bits;
      } else {
        for (int64_t at = place; at < end; ++at) staged[at - begin + lead] = x[at];
      }
    }
  } else {
    for (int64_t at = begin + threadIdx.x; at < end; at += kShortThreads) {
      staged[at - begin] = x[at];
    }
  }
  __syncthreads();

  const int lane = threadIdx.x % lanes, teams = kShortThreads / lanes;
  for (int base = 0; base < count * inner; base += teams) {
    const int result = base + threadIdx.x / lanes;
    Sum sum = {};
    if (result < count * inner) {
      const int of_slab = result / inner;
      const T* from = staged + lead + of_slab * size * inner + (result - of_slab * inner);
      const int step = lanes * inner;
      int k = lane;
      for (from += lane * inner; k + 3 * lanes < size; k += 4 * lanes, from += 4 * step) {
        sum.take(from[0], from[step], from[2 * step], from[3 * step]);
      }
      for (; k < size; k += lanes, from += step) sum.take(to_float(*from));
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      sum.join(sum.of_lane(distance));
    }
    if (lane == 0 && result < count * inner) results.finish(slab * inner + result, sum);
  }
}

// A part of a slab of few columns a block. Packs that lie `same` apart have the same columns. As
// many threads move packs as is a multiple of that.
template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void few_columns(
    const T* __restrict__ x, Results<T> results, int64_t size, int inner, int same, int parts) {
  __shared__ Sum sums[kPack][kThreads];
  const int threads = kThreads / same * same;
  const int64_t slab = blockIdx.x / parts;
  const int part = (int)(blockIdx.x % parts), tid = threadIdx.x;
  const int64_t length = size * inner;
  const T* from = x + slab * length;
  const int lead = kPack > 1 ? (int)((0 - (uintptr_t)from) % 16 / sizeof(T)) : 0;
  const int64_t packs = (length - lead) / kPack, rounds = (packs + threads - 1) / threads;
  const int64_t of_part = (rounds + parts - 1) / parts;
  const int64_t last = (part + 1) * of_part < rounds ? (part + 1) * of_part : rounds;

  Sum own[kPack] = {};
  if (tid < threads) {
    const int64_t step = threads;
    const int64_t stop = last * step < packs ? last * step : packs;
    const T* line = from + lead;
    int64_t pack = part * of_part * step + tid;
    for (; pack + 3 * step < stop; pack += 4 * step) {
      Pack<T, kPack> several[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) several[i] = read<T, kPack>(line + (pack + i * step) * kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        own[j].take(several[0].v[j], several[1].v[j], several[2].v[j], several[3].v[j]);
      }
    }
    for (; pack < stop; pack += step) {
      const Pack<T, kPack> one = read<T, kPack>(line + pack * kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) own[j].take(to_float(one.v[j]));
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) sums[j][tid] = own[j];
  }

  // Of the threads that have the same columns, the upper half adds to the lower.
  for (int rows = threads / same; rows > 1; rows = (rows + 1) / 2) {
    __syncthreads();
    const int upper = (rows + 1) / 2 * same;
    if (tid + upper < rows * same) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) sums[j][tid].join(sums[j][tid + upper]);
    }
  }
  __syncthreads();
  if (tid >= inner) return;
  const int col = (lead + tid) % inner;
  Sum sum = {};
  for (int i = tid; i < same * kPack; i += inner) sum.join(sums[i % kPack][i / kPack]);
  if (part == 0) {  // elements before the first pack and behind the last
    for (int64_t at = 0; at < lead && at < length; ++at) {
      if (at % inner == col) sum.take(to_float(from[at]));
    }
    for (int64_t at = lead + packs * kPack; at < length; ++at) {
      if (at % inner == col) sum.take(to_float(from[at]));
    }
  }
  results.put(slab * inner + col, part, sum);
}

// A part of kWave packs of columns a block; each of its waves takes every kWaves-th row.
template <class T, int kPack>
__global__ __launch_bounds__(kThreads, kResident) void many_columns(
    const T* __restrict__ x, Results<T> results, int64_t size, int inner, int tiles, int parts) {
  constexpr int kWaves = kThreads / kWave, kCols = kWave * kPack;
  __shared__ Sum sums[kWaves][kPack][kWave + 1];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  int64_t index = blockIdx.x;
  const int first = (int)(index % tiles) * kCols;
  index /= tiles;
  const int part = (int)(index % parts);
  const int64_t slab = index / parts;
  const int64_t of_part = (size + parts - 1) / parts;
  const int64_t stop = (part + 1) * of_part < size ? (part + 1) * of_part : size;

  Sum own[kPack] = {};
  const int col = first + lane * kPack;
  if (col < inner) {
    const T* from = x + slab * size * inner + col;
    int64_t row = part * of_part + wave;
    for (; row + 7 * kWaves < stop; row += 8 * kWaves) {
      Pack<T, kPack> several[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) several[i] = read<T, kPack>(from + (row + i * kWaves) * inner);
#pragma unroll
      for (int k = 0; k < 8; k += 4) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          own[j].take(several[k].v[j], several[k + 1].v[j], several[k + 2].v[j],
                      several[k + 3].v[j]);
        }
      }
    }
    for (; row + 3 * kWaves < stop; row += 4 * kWaves) {
      Pack<T, kPack> several[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) several[i] = read<T, kPack>(from + (row + i * kWaves) * inner);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        own[j].take(several[0].v[j], several[1].v[j], several[2].v[j], several[3].v[j]);
      }
    }
    Pack<T, kPack> others[3];  // requested together, too
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (row + i * kWaves < stop) others[i] = read<T, kPack>(from + (row + i * kWaves) * inner);
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (row + i * kWaves >= stop) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) own[j].take(to_float(others[i].v[j]));
    }
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) sums[wave][j][lane] = own[j];
  __syncthreads();
  for (int i = threadIdx.x; i < kCols; i += kThreads) {
    if (first + i >= inner) continue;
    Sum sum = sums[0][i % kPack][i / kPack];
#pragma unroll
    for (int w = 1; w < kWaves; ++w) sum.join(sums[w][i % kPack][i / kPack]);
    results.put(slab * inner + first + i, part, sum);
  }
}

// A block puts together the parts of kWave results; each of its waves every kWave-th part.
template <class T>
__global__ __launch_bounds__(kWave * kWave) void finish(Results<T> results, int parts) {
  __shared__ Sum sums[kWave][kWave + 1];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  const int64_t first = (int64_t)blockIdx.x * kWave;
  Sum sum = {};
  if (first + lane < results.count) {
#pragma unroll 4
    for (int part = wave; part < parts; part += kWave) {
      sum.join(results.parts[part * results.count + first + lane]);
    }
  }
  sums[wave][lane] = sum;
  __syncthreads();
  sum = sums[lane][wave];
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    sum.join(sum.of_lane(distance));
  }
  if (lane == 0 && first + wave < results.count) results.finish(first + wave, sum);
}

// Into how many parts slabs are cut that are the work of `blocks` blocks each, at most `most`.
int64_t parts_of(int64_t blocks, int64_t most) {
  int device = 0, processors = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  const int64_t resident = (int64_t)processors * kResident;
  const int64_t wanted = resident < kMostBlocks ? resident : kMostBlocks;
  const int64_t parts = wanted / blocks;  // all blocks run at once
  if (parts < 1 || most < 1) return 1;
  return parts < most ? parts : most;
}

template <class T>
hipError_t reduce_axis(const T* x, float* mean, T* most, int64_t outer, int64_t size,
                       int64_t inner, void* workspace, hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const bool aligned = (uintptr_t)x % 16 == 0;
  const int64_t count = outer * inner, bytes = size * inner * (int64_t)sizeof(T);
  Results<T> results{mean, most, nullptr, count, (float)size};
  if (bytes <= kShortSlab) {
    int64_t slabs = (kShortThreads * kItems * 16 - 16) / bytes;  // the first may begin in a pack
    if (slabs * inner > kShortThreads && inner <= kShortThreads) {  // all threads have as many
      slabs = slabs * inner / kShortThreads * kShortThreads / inner;
    }
    if (slabs > outer) slabs = outer;
    int lanes = 1;
    while (lanes < kWave && 2 * lanes * slabs * inner <= kShortThreads) lanes *= 2;
    const auto kernel = aligned ? short_slabs<T, true> : short_slabs<T, false>;
    const dim3 grid((unsigned)((outer + slabs - 1) / slabs));
    kernel<<<grid, dim3(kShortThreads), 0, stream>>>(x, results, outer, (int)size, (int)inner,
                                                     (int)slabs, lanes);
    return hipGetLastError();
  }

  int64_t parts = 1;
  if (inner <= kFewColumns) {
    int same = (int)inner;  // packs after which columns are the same again
    for (int pack = kPack; pack > 1 && same % 2 == 0; pack /= 2) same /= 2;
    parts = parts_of(outer, size * inner / (4 * kPack * kThreads));
    if (parts > 1) results.parts = static_cast<Sum*>(workspace);
    few_columns<T, kPack><<<dim3((unsigned)(outer * parts)), dim3(kThreads), 0, stream>>>(
        x, results, size, (int)inner, same, (int)parts);
  } else {
    const int pack = aligned && inner % kPack == 0 ? kPack : 1;
    const int64_t tiles = (inner + kWave * pack - 1) / (kWave * pack);
    parts = parts_of(outer * tiles, size / (8 * kThreads / kWave));
    if (parts > 1) results.parts = static_cast<Sum*>(workspace);
    const auto kernel = pack > 1 ? many_columns<T, kPack> : many_columns<T, 1>;
    kernel<<<dim3((unsigned)(outer * tiles * parts)), dim3(kThreads), 0, stream>>>(
        x, results, size, (int)inner, (int)tiles, (int)parts);
  }
  if (parts > 1) {
    finish<T><<<dim3((unsigned)((count + kWave - 1) / kWave)), dim3(kWave * kWave), 0, stream>>>(
        results, (int)parts);
  }
  return hipGetLastError();
}

// For as many parts as slabs are cut into at most, in the widest tiles.
size_t workspace_bytes(int64_t outer, int64_t, int64_t inner) {
  const int64_t tiles = inner <= kFewColumns ? 1 : (inner + kWave * 8 - 1) / (kWave * 8);
  const int64_t parts = (kMostBlocks + outer * tiles - 1) / (outer * tiles);
  return parts > 1 ? parts * outer * inner * sizeof(Sum) : sizeof(Sum);
}

}  // namespace

extern "C" size_t reduce_axis_f32_workspace(int64_t outer, int64_t size, int64_t inner) {
  return workspace_bytes(outer, size, inner);
}

extern "C" size_t reduce_axis_f16_workspace(int64_t outer, int64_t size, int64_t inner) {
  return workspace_bytes(outer, size, inner);
}

extern "C" size_t reduce_axis_bf16_workspace(int64_t outer, int64_t size, int64_t inner) {
  return workspace_bytes(outer, size, inner);
}

extern "C" hipError_t reduce_axis_f32(const float* x, float* mean, float* most, int64_t outer,
                                      int64_t size, int64_t inner, void* workspace,
                                      hipStream_t stream) {
  return reduce_axis(x, mean, most, outer, size, inner, workspace, stream);
}

extern "C" hipError_t reduce_axis_f16(const __half* x, float* mean, __half* most, int64_t outer,
                                      int64_t size, int64_t inner, void* workspace,
                                      hipStream_t stream) {
  return reduce_axis(x, mean, most, outer, size, inner, workspace, stream);
}

extern "C" hipError_t reduce_axis_bf16(const __hip_bfloat16* x, float* mean, __hip_bfloat16* most,
                                       int64_t outer, int64_t size, int64_t inner, void* workspace,
                                       hipStream_t stream) {
  return reduce_axis(x, mean, most, outer, size, inner, workspace, stream);
}
