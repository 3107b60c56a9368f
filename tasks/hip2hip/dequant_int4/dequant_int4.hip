// Weights of 4 bits to floating point: one thread for each byte, which is two weights.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;

__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }
__device__ float to_float(float v) { return v; }

template <class T> __device__ T from_float(float v);
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}
template <> __device__ float from_float<float>(float v) { return v; }

constexpr int64_t kMaxBlocks = 1 << 20;
constexpr int64_t kBytesOfGroup = 64;

template <class T>
__global__ void dequantise(const uint8_t* packed, const T* scale, const uint8_t* zero, T* w,
                           int64_t bytes) {
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < bytes; i += step) {
    const int64_t group = i / kBytesOfGroup;
    const float factor = to_float(scale[group]);
    const int centre = zero[group];
    const int pair = packed[i];
    w[2 * i] = from_float<T>((float)((pair & 15) - centre) * factor);
    w[2 * i + 1] = from_float<T>((float)((pair >> 4) - centre) * factor);
  }
}

template <class T>
hipError_t dequant_int4(const uint8_t* packed, const T* scale, const uint8_t* zero, T* w,
                        int64_t rows, int64_t groups, hipStream_t stream) {
  const int64_t bytes = rows * groups * kBytesOfGroup;
  const int64_t wanted = (bytes + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  dequantise<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(packed, scale, zero, w,
                                                                       bytes);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t dequant_int4_f16(const uint8_t* packed, const __half* scale,
                                       const uint8_t* zero, __half* w, int64_t rows, int64_t groups,
                                       hipStream_t stream) {
  return dequant_int4(packed, scale, zero, w, rows, groups, stream);
}

extern "C" hipError_t dequant_int4_bf16(const uint8_t* packed, const __hip_bfloat16* scale,
                                        const uint8_t* zero, __hip_bfloat16* w, int64_t rows,
                                        int64_t groups, hipStream_t stream) {
  return dequant_int4(packed, scale, zero, w, rows, groups, stream);
}

extern "C" hipError_t dequant_int4_f32(const uint8_t* packed, const float* scale,
                                       const uint8_t* zero, float* w, int64_t rows, int64_t groups,
                                       hipStream_t stream) {
  return dequant_int4(packed, scale, zero, w, rows, groups, stream);
}
