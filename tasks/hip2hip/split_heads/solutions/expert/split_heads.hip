// Queries, keys and values to the layouts of attention: a block moves kTokens tokens of one head,
// or of a slice of a long head. Queries and values are copied in packs of 16 bytes. Keys go through
// shared memory, so that they too are written in packs, along the sequence: a row of k may begin
// anywhere, and its packs lie on boundaries nevertheless. These reach up to a pack beyond the
// block's tokens, so that it reads a few more.
//
// Where heads are not aligned, they are read, and q and v written, element by element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kTokens = 64;
constexpr int kSliceBytes = 256;  // at most of a head in a block

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

// Words of 4 bytes in shared memory for a token's keys. They are odd in number: tokens that follow
// each other begin in different banks.
template <class T> __device__ int words_of(int width) {
  return (int)((width * sizeof(T) + 3) / 4) | 1;
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void split(const T* __restrict__ x, T* __restrict__ q,
                                                  T* __restrict__ k, T* __restrict__ v, int seq,
                                                  int heads, int dim, int tiles, int slices,
                                                  int width) {
  constexpr int kWide = 16 / sizeof(T), kMostWords = kSliceBytes / 4 | 1;
  __shared__ uint32_t tile[(kTokens + kWide - 1) * kMostWords];
  int64_t index = blockIdx.x;
  const int begin = (int)(index % slices) * width;
  index /= slices;
  const int head = (int)(index % heads);
  index /= heads;
  const int first = (int)(index % tiles) * kTokens;
  const int64_t sequence = index / tiles, place = sequence * heads + head;
  const int cols = dim - begin < width ? dim - begin : width;
  const int tokens = seq - first < kTokens ? seq - first : kTokens;
  const int extra = seq - first - tokens < kWide - 1 ? seq - first - tokens : kWide - 1;
  const int stride = words_of<T>(width);
  const int64_t apart = (int64_t)heads * dim;  // between a token's query, key and value
  const T* from = x + (sequence * seq + first) * 3 * apart + (int64_t)head * dim + begin;
  T* const to_q = q + (place * seq + first) * dim + begin;
  T* const to_v = v + (place * seq + first) * dim + begin;

  const int packs = cols / kPack;  // of a token
  const auto keep = [&](int token, int col, const Pack<T, kPack>& pack) {
    if constexpr (kPack == 1) {
      reinterpret_cast<T*>(tile + token * stride)[col] = pack.v[0];
    } else {
      uint32_t* words = tile + token * stride + col * (int)sizeof(T) / 4;
      words[0] = pack.bits.x, words[1] = pack.bits.y, words[2] = pack.bits.z,
      words[3] = pack.bits.w;
    }
  };
#pragma unroll 2
  for (int i = threadIdx.x; i < tokens * packs; i += kThreads) {
    const int token = i / packs, col = (i - token * packs) * kPack;
    const T* in = from + token * 3 * apart + col;
    const Pack<T, kPack> of_q = read<T, kPack>(in);
    const Pack<T, kPack> of_k = read<T, kPack>(in + apart);
    const Pack<T, kPack> of_v = read<T, kPack>(in + 2 * apart);
    write<T, kPack>(to_q + (int64_t)token * dim + col, of_q);
    write<T, kPack>(to_v + (int64_t)token * dim + col, of_v);
    keep(token, col, of_k);
  }
  for (int i = threadIdx.x; i < extra * packs; i += kThreads) {
    const int token = tokens + i / packs, col = i % packs * kPack;
    keep(token, col, read<T, kPack>(from + token * 3 * apart + apart + col));
  }
  __syncthreads();

  // Each thread writes a pack of kWide tokens of one column.
  const int available = tokens + extra;
  constexpr int kAcross = kTokens / kWide;
  for (int i = threadIdx.x; i < cols * kAcross; i += kThreads) {
    const int col = i / kAcross;
    T* const out = k + (place * dim + begin + col) * seq + first;
    const auto key = [&](int token) {
      return reinterpret_cast<const T*>(tile + token * stride)[col];
    };
    // The first boundary at or behind the block's first token: tokens before are those of the block
    // before, if there is one.
    const int lead = (int)((0 - (uintptr_t)out) % 16 / sizeof(T));
    const int token = lead + i % kAcross * kWide;
    if (first == 0 && i % kAcross == 0) {
      for (int t = 0; t < lead && t < available; ++t) out[t] = key(t);
    }
    if (token + kWide <= available) {
      Pack<T, kWide> pack;
#pragma unroll
      for (int j = 0; j < kWide; ++j) pack.v[j] = key(token + j);
      write<T, kWide>(out + token, pack);
    } else {
      for (int t = token; t < available; ++t) out[t] = key(t);
    }
  }
}

template <class T>
hipError_t split_heads(const T* x, T* q, T* k, T* v, int64_t batch, int64_t seq, int64_t heads,
                      int64_t dim, hipStream_t stream) {
  constexpr int kWide = 16 / sizeof(T), kSlice = kSliceBytes / sizeof(T);
  const uintptr_t places = (uintptr_t)x | (uintptr_t)q | (uintptr_t)v;
  const bool aligned = dim % kWide == 0 && places % 16 == 0;
  const int tiles = (int)((seq + kTokens - 1) / kTokens);
  const int slices = (int)((dim + kSlice - 1) / kSlice);
  const int width = (int)((dim + slices - 1) / slices + kWide - 1) / kWide * kWide;
  const int64_t blocks = batch * tiles * heads * slices;
  const auto kernel = aligned ? split<T, kWide> : split<T, 1>;
  kernel<<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(
      x, q, k, v, (int)seq, (int)heads, (int)dim, tiles, slices, width);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t split_heads_f32(const float* x, float* q, float* k, float* v, int64_t batch,
                                      int64_t seq, int64_t heads, int64_t dim, hipStream_t stream) {
  return split_heads(x, q, k, v, batch, seq, heads, dim, stream);
}

extern "C" hipError_t split_heads_f16(const __half* x, __half* q, __half* k, __half* v,
                                      int64_t batch, int64_t seq, int64_t heads, int64_t dim,
                                      hipStream_t stream) {
  return split_heads(x, q, k, v, batch, seq, heads, dim, stream);
}

extern "C" hipError_t split_heads_bf16(const __hip_bfloat16* x, __hip_bfloat16* q,
                                       __hip_bfloat16* k, __hip_bfloat16* v, int64_t batch,
                                       int64_t seq, int64_t heads, int64_t dim,
                                       hipStream_t stream) {
  return split_heads(x, q, k, v, batch, seq, heads, dim, stream);
}
