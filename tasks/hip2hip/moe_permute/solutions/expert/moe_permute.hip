// Tokens ordered by expert in three kernels, of which the last moves rows at the speed of memory.
//
//  * tally counts the choices of each expert in chunks of 1024; one chunk needs none;
//  * assign finds the place of each choice: those of earlier experts and of earlier chunks come
//    before it, which are sums of counts, and those before it in its chunk, which 32 lanes find out
//    by shuffles, and waves from each other's counts. Nothing depends on the order of threads;
//  * move reads each row once and writes it to all its places. It takes words of 16 bytes, or the
//    widest that rows are aligned to, and lanes do not mind where one row ends and the next begins.
//
// Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;      // lanes that work together by shuffles, also in waves of 64
constexpr int kChunk = 1024;   // choices of a block, one for each thread
constexpr int kWaves = kChunk / kWave;
constexpr int kExperts = 512;  // at most
constexpr int kThreads = 256;  // of a block that moves rows
constexpr int64_t kFewBlocks = 1024;

__global__ __launch_bounds__(kChunk) void tally(const int32_t* __restrict__ expert,
                                                int32_t* __restrict__ counts, int choices,
                                                int experts) {
  __shared__ int32_t sums[kExperts];
  const int choice = (int)blockIdx.x * kChunk + (int)threadIdx.x;
  if (threadIdx.x < kExperts) sums[threadIdx.x] = 0;
  __syncthreads();
  if (choice < choices) atomicAdd(&sums[expert[choice]], 1);
  __syncthreads();
  if ((int)threadIdx.x < experts) counts[blockIdx.x * experts + threadIdx.x] = sums[threadIdx.x];
}

__global__ __launch_bounds__(kChunk) void assign(const int32_t* __restrict__ expert,
                                                 const int32_t* __restrict__ counts,
                                                 int32_t* __restrict__ slot,
                                                 int32_t* __restrict__ count, int choices,
                                                 int experts) {
  // Of each wave how many choices each expert has; later, how many it has in the waves before.
  __shared__ uint16_t of_wave[kWaves][kExperts];
  __shared__ int32_t begin[kExperts], scratch[kExperts / kWave];
  const int thread = threadIdx.x, lane = thread % kWave, wave = thread / kWave;
  const int chunk = blockIdx.x, chunks = gridDim.x, choice = chunk * kChunk + thread;
  const int own = choice < choices ? expert[choice] : -1;
  for (int i = lane; i < experts; i += kWave) of_wave[wave][i] = 0;
  int before = 0, same = 0;  // of the lanes, those with the same expert
#pragma unroll
  for (int other = 0; other < kWave; ++other) {
    const bool equal = __shfl(own, other, kWave) == own;
    before += equal && other < lane;
    same += equal;
  }
  __syncthreads();  // the zeros of other lanes
  if (own >= 0 && before == 0) of_wave[wave][own] = (uint16_t)same;
  __syncthreads();

  // A thread has an expert: its choices of earlier chunks, of this one and of all.
  int earlier = 0, here = 0, all = 0;
  if (thread < experts) {
#pragma unroll 8
    for (int w = 0; w < kWaves; ++w) {
      const int some = of_wave[w][thread];
      of_wave[w][thread] = (uint16_t)here;
      here += some;
    }
    all = here;
#pragma unroll 8
    for (int c = 0; c < chunks; ++c) {
      if (c == chunk) continue;
      const int some = counts[(int64_t)c * experts + thread];
      all += some;
      earlier += c < chunk ? some : 0;
    }
    if (chunk == 0) count[thread] = all;
  }
  int sum = all;  // with all experts before
#pragma unroll
  for (int distance = 1; distance < kWave; distance *= 2) {
    const int other = __shfl_up(sum, distance, kWave);
    if (lane >= distance) sum += other;
  }
  if (thread < kExperts && lane == kWave - 1) scratch[wave] = sum;
  __syncthreads();
  if (thread < experts) {
    int waves = 0;
    for (int w = 0; w < wave; ++w) waves += scratch[w];
    begin[thread] = waves + sum - all + earlier;
  }
  __syncthreads();
  if (own >= 0) slot[choice] = begin[own] + of_wave[wave][own] + before;
}

template <class Word, int kItems>
__global__ __launch_bounds__(kThreads) void move(const Word* __restrict__ x,
                                                 const int32_t* __restrict__ slot,
                                                 Word* __restrict__ grouped, int64_t words,
                                                 int row_words, int k) {
  const int64_t first = (int64_t)blockIdx.x * (kThreads * kItems) + threadIdx.x;
  Word held[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (first + i * kThreads < words) held[i] = x[first + i * kThreads];
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (first + i * kThreads >= words) continue;
    const uint32_t word = (uint32_t)(first + i * kThreads);  // there are at most 2^29
    const uint32_t token = word / (uint32_t)row_words, within = word - token * row_words;
    const int32_t* to = slot + (int64_t)token * k;
#pragma unroll 4
    for (int j = 0; j < k; ++j) grouped[(int64_t)to[j] * row_words + within] = held[i];
  }
}

template <class Word> void move_rows(const void* x, const int32_t* slot, void* grouped,
                                     int64_t tokens, int64_t k, int64_t row_bytes,
                                     hipStream_t stream) {
  constexpr int kMany = sizeof(Word) == 16 ? 4 : 8;
  const int row_words = (int)(row_bytes / sizeof(Word));
  const int64_t words = tokens * row_words;
  const auto start = [&](auto kernel, int64_t of_block) {
    kernel<<<dim3((unsigned)((words + of_block - 1) / of_block)), dim3(kThreads), 0, stream>>>(
        static_cast<const Word*>(x), slot, static_cast<Word*>(grouped), words, row_words, (int)k);
  };
  // Of few rows a thread takes one word, so that all processors have something to do.
  if (words < kFewBlocks * kThreads * kMany) return start(move<Word, 1>, kThreads);
  start(move<Word, kMany>, kThreads * kMany);
}

size_t moe_permute_workspace(int64_t tokens, int64_t k, int64_t experts) {
  return (tokens * k + kChunk - 1) / kChunk * experts * sizeof(int32_t);
}

hipError_t moe_permute(const void* x, const int32_t* expert, void* grouped, int32_t* slot,
                       int32_t* count, int64_t tokens, int64_t k, int64_t row_bytes,
                       int64_t experts, void* workspace, hipStream_t stream) {
  int32_t* counts = static_cast<int32_t*>(workspace);
  const int choices = (int)(tokens * k);
  const dim3 chunks((unsigned)((choices + kChunk - 1) / kChunk)), threads(kChunk);
  if (chunks.x > 1) {
    tally<<<chunks, threads, 0, stream>>>(expert, counts, choices, (int)experts);
  }
  assign<<<chunks, threads, 0, stream>>>(expert, counts, slot, count, choices, (int)experts);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)grouped | (uintptr_t)row_bytes;
  const auto start = places % 16 == 0  ? move_rows<uint4>
                     : places % 4 == 0 ? move_rows<uint32_t>
                                       : move_rows<uint16_t>;
  start(x, slot, grouped, tokens, k, row_bytes, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" size_t moe_permute_f32_workspace(int64_t tokens, int64_t k, int64_t cols,
                                            int64_t experts) {
  return moe_permute_workspace(tokens, k, experts);
}

extern "C" hipError_t moe_permute_f32(const float* x, const int32_t* expert, float* grouped,
                                      int32_t* slot, int32_t* count, int64_t tokens, int64_t k,
                                      int64_t cols, int64_t experts, void* workspace,
                                      hipStream_t stream) {
  return moe_permute(x, expert, grouped, slot, count, tokens, k, cols * sizeof(float), experts,
                     workspace, stream);
}

extern "C" size_t moe_permute_f16_workspace(int64_t tokens, int64_t k, int64_t cols,
                                            int64_t experts) {
  return moe_permute_workspace(tokens, k, experts);
}

extern "C" hipError_t moe_permute_f16(const __half* x, const int32_t* expert, __half* grouped,
                                      int32_t* slot, int32_t* count, int64_t tokens, int64_t k,
                                      int64_t cols, int64_t experts, void* workspace,
                                      hipStream_t stream) {
  return moe_permute(x, expert, grouped, slot, count, tokens, k, cols * sizeof(__half), experts,
                     workspace, stream);
}

extern "C" size_t moe_permute_bf16_workspace(int64_t tokens, int64_t k, int64_t cols,
                                             int64_t experts) {
  return moe_permute_workspace(tokens, k, experts);
}

extern "C" hipError_t moe_permute_bf16(const __hip_bfloat16* x, const int32_t* expert,
                                       __hip_bfloat16* grouped, int32_t* slot, int32_t* count,
                                       int64_t tokens, int64_t k, int64_t cols, int64_t experts,
                                       void* workspace, hipStream_t stream) {
  return moe_permute(x, expert, grouped, slot, count, tokens, k, cols * sizeof(__hip_bfloat16),
                     experts, workspace, stream);
}
