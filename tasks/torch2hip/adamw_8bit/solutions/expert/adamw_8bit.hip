// One step of AdamW with moments in 8 bits, in one pass: 16 lanes hold a block of 256 parameters in
// registers between its maxima, which they find by shuffles, and its bytes.
//
// A lane has four packs of four neighbours, 16 bytes of float32 and one word of bytes, and requests
// all of them before it looks at one. Packs of a lane are one turn of the 16 lanes apart, so that
// all tensors, of one to four bytes an element, are moved without gaps. What is equal for all
// elements is divided by once; the root is a product with the inverse root.
//
// If a pointer is not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kSize = 256;  // parameters of a block that share their scales
constexpr int kWave = 32;   // lanes that reduce by shuffles, also in waves of 64

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// The word that has so many bytes.
template <int kBytes> struct Word;
template <> struct Word<1> { using Type = uint8_t; };
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint2; };
template <> struct Word<16> { using Type = uint4; };

// Elements that are moved as one word: a compiler may cut a copy of the elements into pieces.
template <class T, int kPack> union Pack {
  typename Word<kPack * sizeof(T)>::Type bits;
  T v[kPack];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
#ifdef __HIP_PLATFORM_NVIDIA__
  if constexpr (sizeof(pack) == 16) {  // nvcc cuts a store that is written in C++ into four
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(pack.bits.x), "r"(pack.bits.y), "r"(pack.bits.z), "r"(pack.bits.w)
                 : "memory");
    return;
  }
#endif
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

template <int kLanes> __device__ float largest_of(float value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor(value, distance, kWave));
  }
  return value;
}

// The lowest byte of the nearest integer of a number below 2^22: the sum with 1.5 * 2^23 has it in
// its lowest bits. Conversions have few units; sums have many.
__device__ uint32_t nearest(float value) { return __float_as_uint(value + 12582912.0f); }

struct Rates {
  float beta1, beta2, eps, shrink, rate, widen;
};

template <class T> struct Tensors {
  const float* param;
  const T* grad;
  const int8_t* m_q;
  const float* m_scale;
  const uint8_t* r_q;
  const float* r_scale;
  T* weight;
  float* param_new;
  int8_t* m_q_new;
  float* m_scale_new;
  uint8_t* r_q_new;
  float* r_scale_new;
};

template <class T, int kPack, int kLanes>
__global__ __launch_bounds__(kThreads) void update(const Tensors<T> of, const Rates rates,
                                                   int64_t blocks) {
  constexpr int kItems = kSize / (kLanes * kPack);
  const int lane = threadIdx.x % kLanes;
  const int64_t block = (int64_t)blockIdx.x * (kThreads / kLanes) + threadIdx.x / kLanes;
  if (block >= blocks) return;
  const auto place = [&](int item) { return block * kSize + (item * kLanes + lane) * kPack; };

  Pack<float, kPack> param[kItems];
  Pack<T, kPack> grad[kItems];
  Pack<int8_t, kPack> m_q[kItems];
  Pack<uint8_t, kPack> r_q[kItems];
  const float m_step = of.m_scale[block], r_step = of.r_scale[block];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    grad[i] = read<T, kPack>(of.grad + place(i));
    m_q[i] = read<int8_t, kPack>(of.m_q + place(i));
    r_q[i] = read<uint8_t, kPack>(of.r_q + place(i));
    param[i] = read<float, kPack>(of.param + place(i));
  }

  float m[kItems][kPack], root[kItems][kPack], most = 0.0f, highest = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    Pack<T, kPack> weight;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float g = to_float(grad[i].v[j]), r = (float)r_q[i].v[j] * r_step;
      const float mean = rates.beta1 * ((float)m_q[i].v[j] * m_step) + (1.0f - rates.beta1) * g;
      const float square = rates.beta2 * (r * r) + (1.0f - rates.beta2) * (g * g);
      const float own = square > 0.0f ? square * rsqrtf(square) : 0.0f;
      const float step = __fdividef(mean, own * rates.widen + rates.eps);
      param[i].v[j] = param[i].v[j] * rates.shrink - rates.rate * step;
      weight.v[j] = from_float<T>(param[i].v[j]);
      m[i][j] = mean;
      root[i][j] = own;
      most = fmaxf(most, fabsf(mean));
      highest = fmaxf(highest, own);
    }
    write<float, kPack>(of.param_new + place(i), param[i]);
    write<T, kPack>(of.weight + place(i), weight);
  }

  most = largest_of<kLanes>(most);
  highest = largest_of<kLanes>(highest);
  const float m_new = most / 127.0f, r_new = highest / 255.0f;
  if (lane == 0) {
    of.m_scale_new[block] = m_new;
    of.r_scale_new[block] = r_new;
  }
  // A step has no finite inverse below the normal numbers: those means are scaled up first. Roots
  // of float32 numbers are never that small.
  const float lift = most < 1e-30f ? 1e15f : 1.0f;
  const float per_m = m_new > 0.0f ? 127.0f / (most * lift) : 0.0f;
  const float per_r = r_new > 0.0f ? 255.0f / highest : 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    Pack<int8_t, kPack> m_bytes;
    Pack<uint8_t, kPack> r_bytes;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      m_bytes.v[j] = (int8_t)nearest(m[i][j] * lift * per_m);
      r_bytes.v[j] = (uint8_t)nearest(root[i][j] * per_r);
    }
    write<int8_t, kPack>(of.m_q_new + place(i), m_bytes);
    write<uint8_t, kPack>(of.r_q_new + place(i), r_bytes);
  }
}

template <class T>
hipError_t adamw_8bit(const Tensors<T>& of, float lr, float beta1, float beta2, float eps,
                      float decay, float c1, float c2, int64_t blocks, hipStream_t stream) {
  // sqrt(v / c2) is the root times widen; 1 - lr * decay is what stays of a parameter.
  const Rates rates = {beta1, beta2, eps, 1.0f - lr * decay, lr / c1, 1.0f / sqrtf(c2)};
  const uintptr_t places = (uintptr_t)of.param | (uintptr_t)of.grad | (uintptr_t)of.m_q |
                           (uintptr_t)of.r_q | (uintptr_t)of.weight | (uintptr_t)of.param_new |
                           (uintptr_t)of.m_q_new | (uintptr_t)of.r_q_new;
  const auto start = [&](auto kernel, int lanes) {
    const int64_t of_group = kThreads / lanes;
    const dim3 grid((unsigned)((blocks + of_group - 1) / of_group));
    kernel<<<grid, dim3(kThreads), 0, stream>>>(of, rates, blocks);
  };
  if (places % 16 == 0) {
    start(update<T, 4, 16>, 16);
  } else {
    start(update<T, 1, 32>, 32);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t adamw_8bit_f32(const float* param, const float* grad, const int8_t* m_q,
                                     const float* m_scale, const uint8_t* r_q, const float* r_scale,
                                     float* weight, float* param_new, int8_t* m_q_new,
                                     float* m_scale_new, uint8_t* r_q_new, float* r_scale_new,
                                     float lr, float beta1, float beta2, float eps, float decay,
                                     float c1, float c2, int64_t blocks, hipStream_t stream) {
  const Tensors<float> of = {param,     grad,    m_q,         m_scale, r_q,         r_scale, weight,
                             param_new, m_q_new, m_scale_new, r_q_new, r_scale_new};
  return adamw_8bit(of, lr, beta1, beta2, eps, decay, c1, c2, blocks, stream);
}

extern "C" hipError_t adamw_8bit_f16(const float* param, const __half* grad, const int8_t* m_q,
                                     const float* m_scale, const uint8_t* r_q, const float* r_scale,
                                     __half* weight, float* param_new, int8_t* m_q_new,
                                     float* m_scale_new, uint8_t* r_q_new, float* r_scale_new,
                                     float lr, float beta1, float beta2, float eps, float decay,
                                     float c1, float c2, int64_t blocks, hipStream_t stream) {
  const Tensors<__half> of = {param,  grad,      m_q,     m_scale,     r_q,     r_scale,
                              weight, param_new, m_q_new, m_scale_new, r_q_new, r_scale_new};
  return adamw_8bit(of, lr, beta1, beta2, eps, decay, c1, c2, blocks, stream);
}

extern "C" hipError_t adamw_8bit_bf16(const float* param, const __hip_bfloat16* grad,
                                      const int8_t* m_q, const float* m_scale, const uint8_t* r_q,
                                      const float* r_scale, __hip_bfloat16* weight,
                                      float* param_new, int8_t* m_q_new, float* m_scale_new,
                                      uint8_t* r_q_new, float* r_scale_new, float lr, float beta1,
                                      float beta2, float eps, float decay, float c1, float c2,
                                      int64_t blocks, hipStream_t stream) {
  const Tensors<__hip_bfloat16> of = {
      param,  grad,      m_q,     m_scale,     r_q,     r_scale,
      weight, param_new, m_q_new, m_scale_new, r_q_new, r_scale_new};
  return adamw_8bit(of, lr, beta1, beta2, eps, decay, c1, c2, blocks, stream);
}
