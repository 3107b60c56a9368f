// Means and largest values along the middle axis: one thread for each result, which walks over the
// axis.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

constexpr int kThreads = 128;

template <class T>
__global__ void reduce(const T* x, float* mean, T* most, int64_t outer, int64_t size,
                       int64_t inner) {
  const int64_t i = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (i >= outer * inner) {
    return;
  }
  const T* first = x + i / inner * size * inner + i % inner;
  float sum = 0.0f;
  float lost = 0.0f;  // what rounding took from the sum (Kahan)
  float largest = 0.0f;
  for (int64_t k = 0; k < size; ++k) {
    const float value = to_float(first[k * inner]);
    const float added = value - lost;
    const float next = sum + added;
    lost = (next - sum) - added;
    sum = next;
    largest = fmaxf(largest, fabsf(value));
  }
  mean[i] = sum / (float)size;
  most[i] = from_float<T>(largest);
}

template <class T>
hipError_t reduce_axis(const T* x, float* mean, T* most, int64_t outer, int64_t size,
                       int64_t inner, hipStream_t stream) {
  const unsigned blocks = (unsigned)((outer * inner + kThreads - 1) / kThreads);
  reduce<T><<<dim3(blocks), dim3(kThreads), 0, stream>>>(x, mean, most, outer, size, inner);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t reduce_axis_f32(const float* x, float* mean, float* most, int64_t outer,
                                      int64_t size, int64_t inner, hipStream_t stream) {
  return reduce_axis(x, mean, most, outer, size, inner, stream);
}

extern "C" hipError_t reduce_axis_f16(const __half* x, float* mean, __half* most, int64_t outer,
                                      int64_t size, int64_t inner, hipStream_t stream) {
  return reduce_axis(x, mean, most, outer, size, inner, stream);
}

extern "C" hipError_t reduce_axis_bf16(const __hip_bfloat16* x, float* mean, __hip_bfloat16* most,
                                       int64_t outer, int64_t size, int64_t inner,
                                       hipStream_t stream) {
  return reduce_axis(x, mean, most, outer, size, inner, stream);
}
