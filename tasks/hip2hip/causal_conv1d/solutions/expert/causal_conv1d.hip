// Causal convolution of each channel and SiLU: a thread computes packs of 16 bytes along the
// sequence. Of the pack before it needs the last few values, and reads the pack once more, from the
// cache. All packs are requested before the first is looked at. Where rows are aligned, a block has
// a piece of one row, and its taps. Elsewhere packs lie on 16-byte boundaries whatever the length
// of a sequence; those that are cut by a sequence's end go element by element.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kItems = 2;  // packs of a thread
constexpr int kTaps = 4;   // of the widest filter

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// As many elements as a word of 16 bytes or fewer holds. They are moved as `bits`: a compiler may
// cut a copy of the elements into pieces.
template <int kBytes> struct WordOf;
template <> struct WordOf<2> {
  using Type = uint16_t;
};
template <> struct WordOf<4> {
  using Type = uint32_t;
};
template <> struct WordOf<8> {
  using Type = uint2;
};
template <> struct WordOf<16> {
  using Type = uint4;
};
template <class T, int kPack> union Pack {
  typename WordOf<kPack * sizeof(T)>::Type bits;
  T v[kPack];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

__device__ float silu(float z) {
#ifdef __HIP_PLATFORM_NVIDIA__
  // Subnormal results count as zero here, as they may: without that, it is twice as many
  // instructions, and these would take longer than the memory.
  float power, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.44269504f * z));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + power));
  return z * inverse;
#else
  return __fdividef(z, 1.0f + __expf(-z));
#endif
}

// The result of one element, where a pack has those of several sequences.
template <class T>
__device__ T element(const T* x, const T* weight, const T* bias, int64_t place, int time,
                     int channel, int width) {
  float z = to_float(bias[channel]);
  for (int back = time < width - 1 ? time : width - 1; back >= 0; --back) {
    z += to_float(weight[channel * width + width - 1 - back]) * to_float(x[place - back]);
  }
  return from_float<T>(silu(z));
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads) void convolve(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ y, int64_t total, unsigned channels, unsigned seq, int width) {
  constexpr int kReach = kTaps - 1;                      // values that are needed before a pack
  constexpr int kBefore = (kReach + kPack - 1) / kPack;  // packs that have them
  const int64_t first = (int64_t)blockIdx.x * (kThreads * kItems * kPack);
  // A division of 64 bits takes many instructions.
  const unsigned row = first >> 32 ? (unsigned)(first / seq) : (unsigned)first / seq;
  const unsigned start = (unsigned)(first - (int64_t)row * seq);

  Pack<T, kPack> here[kItems], before[kItems][kBefore];
  Pack<T, 1> taps[kItems][kTaps], biases[kItems];
  unsigned times[kItems];  // of a pack's first element
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const unsigned offset = (i * kThreads + threadIdx.x) * kPack;
    if (first + offset + kPack > total) break;
    const unsigned down = (start + offset) / seq, channel = (row + down) % channels;
    times[i] = start + offset - down * seq;
    const T* from = x + first + offset;
    here[i] = read<T, kPack>(from);
#pragma unroll
    for (int b = 0; b < kBefore; ++b) {
      before[i][b] = Pack<T, kPack>{};
      if (times[i] > (unsigned)b * kPack) before[i][b] = read<T, kPack>(from - (b + 1) * kPack);
    }
    biases[i].v[0] = bias[channel];
#pragma unroll
    for (int back = 0; back < kTaps; ++back) {
      if (back < width) taps[i][back].v[0] = weight[channel * width + width - 1 - back];
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const unsigned offset = (i * kThreads + threadIdx.x) * kPack;
    const int64_t place = first + offset;
    if (place >= total) break;
    if (place + kPack > total || times[i] + kPack > seq) {
      const unsigned down = (start + offset) / seq;
      int time = (int)(start + offset - down * seq), channel = (int)((row + down) % channels);
      for (int j = 0; j < kPack && place + j < total; ++j) {
        y[place + j] = element(x, weight, bias, place + j, time, channel, width);
        if (++time < (int)seq) continue;
        time = 0;
        channel = channel + 1 < (int)channels ? channel + 1 : 0;
      }
      continue;
    }
    float values[kReach + kPack];  // of the time kReach before the pack, and on
#pragma unroll
    for (int j = 0; j < kReach; ++j) {
      const int back = kReach - j;
      const float value = to_float(before[i][(back - 1) / kPack].v[kPack - 1 - (back - 1) % kPack]);
      values[j] = times[i] >= (unsigned)back ? value : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) values[kReach + j] = to_float(here[i].v[j]);
    float factors[kTaps];
#pragma unroll
    for (int back = 0; back < kTaps; ++back) {
      factors[back] = back < width ? to_float(taps[i][back].v[0]) : 0.0f;
    }
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      float z = to_float(biases[i].v[0]);
#pragma unroll
      for (int back = kTaps - 1; back >= 0; --back) z += factors[back] * values[kReach + j - back];
      result.v[j] = from_float<T>(silu(z));
    }
    write<T, kPack>(y + place, result);
  }
}

// A block has a piece of one row: all its threads have the same taps, and nothing is divided.
template <class T>
__global__ __launch_bounds__(kThreads) void convolve_row(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ y, int seq, int width) {
  constexpr int kPack = 16 / sizeof(T);
  const int channel = blockIdx.x, stride = (int)blockDim.x * kPack;
  const int64_t row = ((int64_t)blockIdx.z * gridDim.x + channel) * seq;
  const int first = (int)blockIdx.y * stride * kItems + (int)threadIdx.x * kPack;
  const T* const from = x + row;

  Pack<T, kPack> here[kItems];
  Pack<T, kTaps> before[kItems];  // as many as there are taps: one more than is needed, but aligned
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int time = first + i * stride;
    if (time < seq) here[i] = read<T, kPack>(from + time);
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int time = first + i * stride;
    before[i].bits = {};
    if (time < seq && time > 0) before[i] = read<T, kTaps>(from + time - kTaps);
  }
  float factors[kTaps];
#pragma unroll
  for (int back = 0; back < kTaps; ++back) {
    factors[back] = back < width ? to_float(weight[channel * width + width - 1 - back]) : 0.0f;
  }
  const float start = to_float(bias[channel]);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int time = first + i * stride;
    if (time >= seq) break;
    float values[kTaps + kPack];  // of the time kTaps before the pack, and on
#pragma unroll
    for (int j = 0; j < kTaps; ++j) values[j] = to_float(before[i].v[j]);
#pragma unroll
    for (int j = 0; j < kPack; ++j) values[kTaps + j] = to_float(here[i].v[j]);
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      float z = start;
#pragma unroll
      for (int back = kTaps - 1; back >= 0; --back) z += factors[back] * values[kTaps + j - back];
      result.v[j] = from_float<T>(silu(z));
    }
    write<T, kPack>(y + row + time, result);
  }
}

template <class T, int kPack>
void launch(const T* x, const T* weight, const T* bias, T* y, int64_t total, int64_t channels,
            int64_t seq, int64_t width, hipStream_t stream) {
  constexpr int kOfBlock = kThreads * kItems * kPack;
  const int64_t blocks = (total + kOfBlock - 1) / kOfBlock;
  convolve<T, kPack><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(
      x, weight, bias, y, total, (unsigned)channels, (unsigned)seq, (int)width);
}

template <class T>
hipError_t causal_conv1d(const T* x, const T* weight, const T* bias, T* y, int64_t batch,
                         int64_t channels, int64_t seq, int64_t width, hipStream_t stream) {
  const bool aligned = ((uintptr_t)x | (uintptr_t)y) % 16 == 0;
  constexpr int kPack = 16 / sizeof(T);
  if (aligned && seq % kPack == 0) {
    const int64_t packs = seq / kPack;
    // Threads in whole waves of 64, as few as have the row in one piece.
    int64_t threads = (packs + kItems * 64 - 1) / (kItems * 64) * 64;
    if (threads > kThreads) threads = kThreads;
    const int64_t pieces = (packs + threads * kItems - 1) / (threads * kItems);
    convolve_row<T><<<dim3((unsigned)channels, (unsigned)pieces, (unsigned)batch),
                      dim3((unsigned)threads), 0, stream>>>(x, weight, bias, y, (int)seq,
                                                            (int)width);
    return hipGetLastError();
  }
  const auto start = aligned ? launch<T, 16 / sizeof(T)> : launch<T, 1>;
  start(x, weight, bias, y, batch * channels * seq, channels, seq, width, stream);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t causal_conv1d_f32(const float* x, const float* weight, const float* bias,
                                        float* y, int64_t batch, int64_t channels, int64_t seq,
                                        int64_t width, hipStream_t stream) {
  return causal_conv1d(x, weight, bias, y, batch, channels, seq, width, stream);
}

extern "C" hipError_t causal_conv1d_f16(const __half* x, const __half* weight, const __half* bias,
                                        __half* y, int64_t batch, int64_t channels, int64_t seq,
                                        int64_t width, hipStream_t stream) {
  return causal_conv1d(x, weight, bias, y, batch, channels, seq, width, stream);
}

extern "C" hipError_t causal_conv1d_bf16(const __hip_bfloat16* x, const __hip_bfloat16* weight,
                                         const __hip_bfloat16* bias, __hip_bfloat16* y,
                                         int64_t batch, int64_t channels, int64_t seq,
                                         int64_t width, hipStream_t stream) {
  return causal_conv1d(x, weight, bias, y, batch, channels, seq, width, stream);
}
