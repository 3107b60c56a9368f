// Rows moved to their places at the speed of memory, by two kernels. The first counts kept tokens:
// how many each 1024 have, and how many of these come before each 32. In the second a block has 32
// tokens, or a part of their rows, and requests what it is to move before anything else: their
// elements lie one behind the other. While these are on their way it adds up the counts before its
// own, and so knows where its rows go. It moves words of 16 bytes, or the widest that rows are
// aligned to, and lanes do not mind where one row ends and the next begins.
//
// Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWave = 32;   // lanes that reduce by shuffles, also in waves of 64
constexpr int kChunk = 32;  // tokens of a block that moves rows
constexpr int kOfThread = 4, kCounted = kThreads * kOfThread;  // tokens of a block that counts
constexpr int64_t kManyBlocks = 4096;

__global__ __launch_bounds__(kThreads) void count(const uint8_t* __restrict__ mask,
                                                  int32_t* __restrict__ before,
                                                  int32_t* __restrict__ totals, int tokens) {
  __shared__ int32_t scratch[kThreads / kWave];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  const int first = (int)blockIdx.x * kCounted + (int)threadIdx.x * kOfThread;
  int32_t own = 0;
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) own += first + i < tokens ? mask[first + i] : 0;
  int32_t sum = own;  // with all lanes before
#pragma unroll
  for (int distance = 1; distance < kWave; distance *= 2) {
    const int32_t other = __shfl_up(sum, distance, kWave);
    if (lane >= distance) sum += other;
  }
  if (lane == kWave - 1) scratch[wave] = sum;
  __syncthreads();
  int32_t waves = 0;
#pragma unroll
  for (int w = 0; w < kThreads / kWave; ++w) waves += w < wave ? scratch[w] : 0;
  if (first % kChunk == 0 && first < tokens) before[first / kChunk] = waves + sum - own;
  if (threadIdx.x == kThreads - 1) totals[blockIdx.x] = waves + sum;
}

template <class Word, int kItems>
__global__ __launch_bounds__(kThreads) void move(
    const Word* __restrict__ x, const uint8_t* __restrict__ mask,
    const int32_t* __restrict__ before, const int32_t* __restrict__ totals,
    Word* __restrict__ parted, int32_t* __restrict__ place, int32_t* __restrict__ begin,
    int tokens, int seq, int row_words, int words_of_block) {
  __shared__ int32_t ranks[kChunk], sums[2][kThreads / kWave];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  const int first = (int)blockIdx.x * kChunk;
  const int rows = tokens - first < kChunk ? tokens - first : kChunk;
  const int start = (int)blockIdx.y * words_of_block, all_words = rows * row_words;
  const int end = start + words_of_block < all_words ? start + words_of_block : all_words;
  const Word* from = x + (int64_t)first * row_words;
  Word words[kItems];
  const auto request = [&](int at) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (at + i * kThreads < end) words[i] = from[at + i * kThreads];
    }
  };
  int at = start + (int)threadIdx.x;
  request(at);

  int32_t kept = 0, earlier = 0;  // tokens, of all and of those in blocks of counts before
  const int counted = first / kCounted, counts = (tokens + kCounted - 1) / kCounted;
  for (int i = threadIdx.x; i < counts; i += kThreads) {
    const int32_t some = totals[i];
    kept += some;
    earlier += i < counted ? some : 0;
  }
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    kept += __shfl_xor(kept, distance, kWave);
    earlier += __shfl_xor(earlier, distance, kWave);
  }
  if (lane == 0) sums[0][wave] = kept, sums[1][wave] = earlier;
  if (wave == 0) {
    const int32_t stays = lane < rows ? mask[first + lane] : 0;
    int32_t sum = stays;
#pragma unroll
    for (int distance = 1; distance < kWave; distance *= 2) {
      const int32_t other = __shfl_up(sum, distance, kWave);
      if (lane >= distance) sum += other;
    }
    // How many are kept before this token, inverted if it is not.
    const int32_t rank = before[blockIdx.x] + sum - stays;
    ranks[lane] = stays != 0 ? rank : ~rank;
  }
  __syncthreads();
  kept = earlier = 0;
#pragma unroll
  for (int w = 0; w < kThreads / kWave; ++w) kept += sums[0][w], earlier += sums[1][w];

  const auto goes_to = [&](int row) {
    const int32_t rank = ranks[row];
    return rank >= 0 ? earlier + rank : kept + (first + row) - (earlier + ~rank);
  };
  if (blockIdx.y == 0 && (int)threadIdx.x < rows) {
    const int token = first + (int)threadIdx.x;
    const int32_t rank = ranks[threadIdx.x];
    place[goes_to(threadIdx.x)] = token;
    if (token % seq == 0) begin[token / seq] = earlier + (rank >= 0 ? rank : ~rank);
    if (token == tokens - 1) begin[tokens / seq] = kept;
  }
  for (; at < end; at += kItems * kThreads, request(at)) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int word = at + i * kThreads;
      if (word >= end) continue;
      const int row = word / row_words;
      parted[(int64_t)goes_to(row) * row_words + (word - row * row_words)] = words[i];
    }
  }
}

template <class Word>
void launch(const void* x, const uint8_t* mask, void* parted, int32_t* place, int32_t* begin,
            int tokens, int seq, int64_t row_bytes, int32_t* before, int32_t* totals,
            hipStream_t stream) {
  constexpr int kItems = sizeof(Word) == 16 ? 4 : 16;  // 64 bytes of a thread, or half of that
  constexpr int kTurn = kThreads * kItems;
  const int row_words = (int)(row_bytes / sizeof(Word));
  const int chunks = (tokens + kChunk - 1) / kChunk;
  const int turns = (kChunk * row_words + kTurn - 1) / kTurn;
  // Two turns in a block share what it finds out, where there are blocks enough.
  const int of_block = (int64_t)chunks * turns > kManyBlocks ? 2 : 1;
  const dim3 blocks((unsigned)chunks, (unsigned)((turns + of_block - 1) / of_block));
  move<Word, kItems><<<blocks, dim3(kThreads), 0, stream>>>(
      static_cast<const Word*>(x), mask, before, totals, static_cast<Word*>(parted), place, begin,
      tokens, seq, row_words, kTurn * of_block);
}

size_t token_partition_workspace(int64_t batch, int64_t seq) {
  const int64_t tokens = batch * seq;
  return ((tokens + kChunk - 1) / kChunk + (tokens + kCounted - 1) / kCounted) * sizeof(int32_t);
}

hipError_t token_partition(const void* x, const uint8_t* mask, void* parted, int32_t* place,
                           int32_t* begin, int64_t batch, int64_t seq, int64_t row_bytes,
                           void* workspace, hipStream_t stream) {
  const int tokens = (int)(batch * seq);
  int32_t* before = static_cast<int32_t*>(workspace);
  int32_t* totals = before + (tokens + kChunk - 1) / kChunk;
  const dim3 counting((unsigned)((tokens + kCounted - 1) / kCounted));
  count<<<counting, dim3(kThreads), 0, stream>>>(mask, before, totals, tokens);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)parted | (uintptr_t)row_bytes;
  const auto start = places % 16 == 0  ? launch<uint4>
                     : places % 4 == 0 ? launch<uint32_t>
                                       : launch<uint16_t>;
  start(x, mask, parted, place, begin, tokens, (int)seq, row_bytes, before, totals, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t token_partition_f32(const float* x, const uint8_t* mask, float* parted,
                                          int32_t* place, int32_t* begin, int64_t batch,
                                          int64_t seq, int64_t cols, void* workspace,
                                          hipStream_t stream) {
  return token_partition(x, mask, parted, place, begin, batch, seq, cols * sizeof(float), workspace,
                         stream);
}

extern "C" size_t token_partition_f32_workspace(int64_t batch, int64_t seq, int64_t cols) {
  return token_partition_workspace(batch, seq);
}

extern "C" hipError_t token_partition_f16(const __half* x, const uint8_t* mask, __half* parted,
                                          int32_t* place, int32_t* begin, int64_t batch,
                                          int64_t seq, int64_t cols, void* workspace,
                                          hipStream_t stream) {
  return token_partition(x, mask, parted, place, begin, batch, seq, cols * sizeof(__half),
                         workspace, stream);
}

extern "C" size_t token_partition_f16_workspace(int64_t batch, int64_t seq, int64_t cols) {
  return token_partition_workspace(batch, seq);
}

extern "C" hipError_t token_partition_bf16(const __hip_bfloat16* x, const uint8_t* mask,
                                           __hip_bfloat16* parted, int32_t* place, int32_t* begin,
                                           int64_t batch, int64_t seq, int64_t cols,
                                           void* workspace, hipStream_t stream) {
  return token_partition(x, mask, parted, place, begin, batch, seq, cols * sizeof(__hip_bfloat16),
                         workspace, stream);
}

extern "C" size_t token_partition_bf16_workspace(int64_t batch, int64_t seq, int64_t cols) {
  return token_partition_workspace(batch, seq);
}
