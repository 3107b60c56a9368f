// Weights in NVFP4 to floating point: one thread for each byte, which is two weights, with the
// sixteen values in constant memory.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

template <class T> __device__ T from_float(float v);
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ float from_float<float>(float v) { return v; }

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;
constexpr int64_t kBytesOfGroup = 8;

__constant__ float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                  -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

__device__ float from_e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  return exponent == 0 ? ldexpf((float)mantissa, -9) : ldexpf((float)(8 + mantissa), exponent - 10);
}

template <class T>
__global__ void dequantise(const uint8_t* packed, const uint8_t* scale, const float* tensor_scale,
                           T* w, int64_t bytes) {
  const int64_t step = (int64_t)gridDim.x * kThreads;
  for (int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x; i < bytes; i += step) {
    const float factor = from_e4m3(scale[i / kBytesOfGroup]) * tensor_scale[0];
    w[2 * i] = from_float<T>(kValues[packed[i] & 15] * factor);
    w[2 * i + 1] = from_float<T>(kValues[packed[i] >> 4] * factor);
  }
}

template <class T>
hipError_t dequant_nvfp4(const uint8_t* packed, const uint8_t* scale, const float* tensor_scale,
                         T* w, int64_t rows, int64_t groups, hipStream_t stream) {
  const int64_t bytes = rows * groups * kBytesOfGroup;
  const int64_t wanted = (bytes + kThreads - 1) / kThreads;
  const int64_t blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks;
  dequantise<T><<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(packed, scale, tensor_scale,
                                                                       w, bytes);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t dequant_nvfp4_bf16(const uint8_t* packed, const uint8_t* scale,
                                         const float* tensor_scale, __hip_bfloat16* w, int64_t rows,
                                         int64_t groups, hipStream_t stream) {
  return dequant_nvfp4(packed, scale, tensor_scale, w, rows, groups, stream);
}

extern "C" hipError_t dequant_nvfp4_f16(const uint8_t* packed, const uint8_t* scale,
                                        const float* tensor_scale, __half* w, int64_t rows,
                                        int64_t groups, hipStream_t stream) {
  return dequant_nvfp4(packed, scale, tensor_scale, w, rows, groups, stream);
}

extern "C" hipError_t dequant_nvfp4_f32(const uint8_t* packed, const uint8_t* scale,
                                        const float* tensor_scale, float* w, int64_t rows,
                                        int64_t groups, hipStream_t stream) {
  return dequant_nvfp4(packed, scale, tensor_scale, w, rows, groups, stream);
}
