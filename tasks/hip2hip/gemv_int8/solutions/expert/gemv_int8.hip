// A linear layer with int8 weights that are read once: a block computes kOuts channels for up to
// kRows rows of x, and each thread has several words of each channel's weights in flight. Values of
// x are converted once for all channels of the block, weights once for all rows. Sums are those of
// float32: of a thread, of its wave, and of the block's waves.
//
// Where channels are not aligned, a thread takes single weights. Shuffles stay within 32 lanes: one
// source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;  // lanes that reduce by shuffles, also in waves of 64
constexpr int kThreads = 128;
constexpr int kOuts = 4;   // channels of a block
constexpr int kPack = 8;   // weights in a word: 16 would part the lanes' values of x in the cache
constexpr int kItems = 2;  // words of a channel in flight

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// The values of x for kPack weights, moved as words of 16 bytes.
template <class T> union Values {
  uint4 bits[kPack * sizeof(T) / 16];
  T v[kPack];
};

// The int8 weight in byte `at` of a word whose bytes' first bits have been flipped, which makes
// them 0 .. 255, larger by 128: set into the last bits of 2^23, without a conversion, of which a
// GPU does few at a time. The difference is exact.
__device__ float from_flipped(uint32_t word, int at) {
  uint32_t bits;
#ifdef __HIP_PLATFORM_NVIDIA__
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bits) : "r"(word), "r"(0x4b000000u), "r"(0x7440u | at));
#else
  bits = 0x4b000000 | (word >> 8 * at & 255);
#endif
  return __uint_as_float(bits) - 8388736.0f;
}

template <class T, int kRows, bool kAligned>
__global__ __launch_bounds__(kThreads, kRows == 1 ? 8 : 4) void gemv(
    const T* __restrict__ x, const int8_t* __restrict__ w, const float* __restrict__ scale,
    const T* __restrict__ bias, T* __restrict__ y, int batch, int ins, int64_t outs) {
  constexpr int kWaves = kThreads / kWave;
  __shared__ float partial[kWaves][kOuts * kRows];
  const int64_t out = (int64_t)blockIdx.x * kOuts;
  const int first_row = blockIdx.y * kRows;
  const T* rows[kRows];
  const int8_t* channels[kOuts];
  // Beyond the last channel and row, the last ones once more.
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r < batch ? first_row + r : batch - 1;
    rows[r] = x + (int64_t)row * ins;
  }
#pragma unroll
  for (int o = 0; o < kOuts; ++o) channels[o] = w + (out + o < outs ? out + o : outs - 1) * ins;

  float sums[kOuts][kRows] = {};
  if constexpr (kAligned) {
    for (int base = threadIdx.x * kPack; base < ins; base += kThreads * kPack * kItems) {
      uint2 words[kItems][kOuts];
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const int in = base + i * kThreads * kPack;
        if (in >= ins) continue;
#pragma unroll
        for (int o = 0; o < kOuts; ++o) {
          words[i][o] = *reinterpret_cast<const uint2*>(channels[o] + in);
        }
      }
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const int in = base + i * kThreads * kPack;
        if (in >= ins) continue;
        float weights[kOuts][kPack];
#pragma unroll
        for (int o = 0; o < kOuts; ++o) {
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            const uint32_t word = j < 4 ? words[i][o].x : words[i][o].y;
            weights[o][j] = from_flipped(word ^ 0x80808080u, j % 4);
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          Values<T> values;
#pragma unroll
          for (int k = 0; k < (int)(sizeof(values) / 16); ++k) {
            values.bits[k] = reinterpret_cast<const uint4*>(rows[r] + in)[k];
          }
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            const float value = to_float(values.v[j]);
#pragma unroll
            for (int o = 0; o < kOuts; ++o) sums[o][r] = fmaf(value, weights[o][j], sums[o][r]);
          }
        }
      }
    }
  } else {
#pragma unroll 4
    for (int in = threadIdx.x; in < ins; in += kThreads) {
      float weights[kOuts];
#pragma unroll
      for (int o = 0; o < kOuts; ++o) weights[o] = from_flipped((uint8_t)channels[o][in] ^ 0x80, 0);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float value = to_float(rows[r][in]);
#pragma unroll
        for (int o = 0; o < kOuts; ++o) sums[o][r] = fmaf(value, weights[o], sums[o][r]);
      }
    }
  }

  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
#pragma unroll
  for (int o = 0; o < kOuts; ++o) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float sum = sums[o][r];
#pragma unroll
      for (int distance = kWave / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor(sum, distance, kWave);
      }
      if (lane == 0) partial[wave][r * kOuts + o] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x >= kOuts * kRows) return;
  const int row = first_row + threadIdx.x / kOuts;
  const int64_t channel = out + threadIdx.x % kOuts;
  if (row >= batch || channel >= outs) return;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kWaves; ++i) sum += partial[i][threadIdx.x];
  y[row * outs + channel] = from_float<T>(sum * scale[channel] + to_float(bias[channel]));
}

template <class T, bool kAligned>
void by_rows(const T* x, const int8_t* w, const float* scale, const T* bias, T* y, int batch,
             int ins, int64_t outs, hipStream_t stream) {
  const auto start = [&](auto kernel, int rows) {
    const dim3 grid((unsigned)((outs + kOuts - 1) / kOuts), (unsigned)((batch + rows - 1) / rows));
    kernel<<<grid, dim3(kThreads), 0, stream>>>(x, w, scale, bias, y, batch, ins, outs);
  };
  if (batch == 1) return start(gemv<T, 1, kAligned>, 1);
  if (batch == 2) return start(gemv<T, 2, kAligned>, 2);
  if (batch <= 4) return start(gemv<T, 4, kAligned>, 4);
  start(gemv<T, 8, kAligned>, 8);
}

template <class T>
hipError_t gemv_int8(const T* x, const int8_t* w, const float* scale, const T* bias, T* y,
                     int64_t batch, int64_t ins, int64_t outs, hipStream_t stream) {
  const bool aligned = ins % kPack == 0 && ((uintptr_t)x | (uintptr_t)w) % 16 == 0;
  const auto start = aligned ? by_rows<T, true> : by_rows<T, false>;
  start(x, w, scale, bias, y, (int)batch, (int)ins, outs, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gemv_int8_f32(const float* x, const int8_t* w, const float* scale,
                                    const float* bias, float* y, int64_t batch, int64_t ins,
                                    int64_t outs, hipStream_t stream) {
  return gemv_int8(x, w, scale, bias, y, batch, ins, outs, stream);
}

extern "C" hipError_t gemv_int8_f16(const __half* x, const int8_t* w, const float* scale,
                                    const __half* bias, __half* y, int64_t batch, int64_t ins,
                                    int64_t outs, hipStream_t stream) {
  return gemv_int8(x, w, scale, bias, y, batch, ins, outs, stream);
}

extern "C" hipError_t gemv_int8_bf16(const __hip_bfloat16* x, const int8_t* w, const float* scale,
                                     const __hip_bfloat16* bias, __hip_bfloat16* y, int64_t batch,
                                     int64_t ins, int64_t outs, hipStream_t stream) {
  return gemv_int8(x, w, scale, bias, y, batch, ins, outs, stream);
}
