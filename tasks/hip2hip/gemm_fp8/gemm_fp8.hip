// A product of 8-bit floats: tiles of 16 x 16, one element of c a thread, with elements decoded as
// they are loaded into shared memory, and the sum of each group scaled when it is complete.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {


template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

constexpr int kTile = 16;
constexpr int kGroup = 128;

__device__ float decoded(uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const int mantissa = bits & 7;
  const float size = exponent > 0 ? ldexpf((float)(8 + mantissa), exponent - 10)
                                  : ldexpf((float)mantissa, -9);
  return bits & 128 ? -size : size;
}

template <class T>
__global__ void product(const uint8_t* a, const uint8_t* b, const float* a_scale,
                        const float* b_scale, T* c, int64_t m, int64_t n, int64_t groups) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile + 1];
  const int64_t row = (int64_t)blockIdx.y * kTile + threadIdx.y;
  const int64_t col = (int64_t)blockIdx.x * kTile + threadIdx.x;
  const int64_t loaded = (int64_t)blockIdx.x * kTile + threadIdx.y;
  float sum = 0.0f;
  for (int64_t group = 0; group < groups; ++group) {
    float part = 0.0f;
    for (int start = 0; start < kGroup; start += kTile) {
      const int64_t place = group * kGroup + start + threadIdx.x;
      left[threadIdx.y][threadIdx.x] = row < m ? decoded(a[row * groups * kGroup + place]) : 0.0f;
      right[threadIdx.y][threadIdx.x] =
          loaded < n ? decoded(b[loaded * groups * kGroup + place]) : 0.0f;
      __syncthreads();
      for (int i = 0; i < kTile; ++i) {
        part += left[threadIdx.y][i] * right[threadIdx.x][i];
      }
      __syncthreads();
    }
    if (row < m && col < n) {
      sum += part * (a_scale[row * groups + group] * b_scale[col / kGroup * groups + group]);
    }
  }
  if (row < m && col < n) {
    c[row * n + col] = from_float<T>(sum);
  }
}

template <class T>
hipError_t gemm_fp8(const uint8_t* a, const uint8_t* b, const float* a_scale, const float* b_scale,
                    T* c, int64_t m, int64_t n, int64_t groups, hipStream_t stream) {
  const dim3 blocks((unsigned)((n + kTile - 1) / kTile), (unsigned)((m + kTile - 1) / kTile));
  product<T><<<blocks, dim3(kTile, kTile), 0, stream>>>(a, b, a_scale, b_scale, c, m, n, groups);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gemm_fp8_bf16(const uint8_t* a, const uint8_t* b, const float* a_scale,
                                    const float* b_scale, __hip_bfloat16* c, int64_t m, int64_t n,
                                    int64_t groups, hipStream_t stream) {
  return gemm_fp8(a, b, a_scale, b_scale, c, m, n, groups, stream);
}

extern "C" hipError_t gemm_fp8_f16(const uint8_t* a, const uint8_t* b, const float* a_scale,
                                   const float* b_scale, __half* c, int64_t m, int64_t n,
                                   int64_t groups, hipStream_t stream) {
  return gemm_fp8(a, b, a_scale, b_scale, c, m, n, groups, stream);
}

extern "C" hipError_t gemm_fp8_f32(const uint8_t* a, const uint8_t* b, const float* a_scale,
                                   const float* b_scale, float* c, int64_t m, int64_t n,
                                   int64_t groups, hipStream_t stream) {
  return gemm_fp8(a, b, a_scale, b_scale, c, m, n, groups, stream);
}
