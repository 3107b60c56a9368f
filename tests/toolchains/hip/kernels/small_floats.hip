// Half and bfloat16: every bit pattern, every operator.
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

template <class T>
__global__ void widen(const T* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

template <class T, class Wide>
__global__ void narrow(const Wide* in, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = T(in[i]);
}

__global__ void software_widen(const unsigned short* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = hip16::HalfFormat::decode_in_software(in[i]);
}

__global__ void software_narrow(const float* in, unsigned short* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = hip16::HalfFormat::encode_in_software(in[i]);
}

__global__ void round_half(const float* in, __half* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i * 4] = __float2half_rn(in[i]);
  out[i * 4 + 1] = __float2half_rz(in[i]);
  out[i * 4 + 2] = __float2half_rd(in[i]);
  out[i * 4 + 3] = __float2half_ru(in[i]);
}

template <class T>
__global__ void arithmetic(const T* a, const T* b, const T* c, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T* row = out + i * 8;
  row[0] = __hadd(a[i], b[i]);
  row[1] = a[i] - b[i];
  row[2] = __hmul(a[i], b[i]);
  row[3] = a[i] / b[i];
  row[4] = __hfma(a[i], b[i], c[i]);
  row[5] = __hmax(a[i], b[i]);
  row[6] = __hmin(a[i], b[i]);
  row[7] = -a[i];
}

template <class T>
__global__ void comparisons(const T* a, const T* b, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = (a[i] < b[i]) | (a[i] <= b[i]) << 1 | (a[i] == b[i]) << 2 | (a[i] != b[i]) << 3 |
           __hgt(a[i], b[i]) << 4 | __hge(a[i], b[i]) << 5 | __hltu(a[i], b[i]) << 6 |
           __hisnan(a[i]) << 7;
}

template <class T>
__global__ void functions(const T* in, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T* row = out + i * 6;
  row[0] = hexp(in[i]);
  row[1] = hlog(in[i]);
  row[2] = hsqrt(in[i]);
  row[3] = hrcp(in[i]);
  row[4] = hfloor(in[i]);
  row[5] = hrint(in[i]);
}

__global__ void mixed(const __half* in, float* out, __half* halves) {
  const __half x = in[threadIdx.x];
  __half y = x;
  y += 1;
  y *= x;
  float* row = out + threadIdx.x * 6;
  row[0] = x * 0.1f;
  row[1] = 2 * x;
  row[2] = static_cast<float>(1.0 / 3.0 + x);
  row[3] = x > 1.5 ? 1.0f : 0.0f;
  row[4] = __half2int_rn(x);
  row[5] = __shfl_xor(x, 1);
  halves[threadIdx.x] = y;
}

__global__ void pairs(const __half2* a, const __half2* b, __half2* out, float2* wide) {
  const int t = threadIdx.x;
  out[t * 4] = __hadd2(a[t], b[t]);
  out[t * 4 + 1] = __hfma2(a[t], b[t], __float2half2_rn(0.5f));
  out[t * 4 + 2] = a[t] * b[t] - __lowhigh2highlow(a[t]);
  out[t * 4 + 3] = __halves2half2(__high2half(a[t]), __low2half(b[t]));
  wide[t] = __half22float2(__float22half2_rn(make_float2(0.1f * t, 0.2f * t)));
}

#define GRID(n) ((n) + 255) / 256, 256

extern "C" {

hipError_t launch_widen_half(const __half* in, float* out, int n) {
  widen<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_widen_bfloat16(const hip_bfloat16* in, float* out, int n) {
  widen<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_narrow_half(const float* in, __half* out, int n) {
  narrow<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_narrow_bfloat16(const float* in, __hip_bfloat16* out, int n) {
  narrow<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_narrow_half_from_double(const double* in, __half* out, int n) {
  narrow<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_software_widen(const unsigned short* in, float* out, int n) {
  software_widen<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_software_narrow(const float* in, unsigned short* out, int n) {
  software_narrow<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_round_half(const float* in, __half* out, int n) {
  round_half<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_arithmetic_half(const __half* a, const __half* b, const __half* c, __half* out,
                                  int n) {
  arithmetic<<<GRID(n)>>>(a, b, c, out, n);
  return hipGetLastError();
}
hipError_t launch_arithmetic_bfloat16(const __hip_bfloat16* a, const __hip_bfloat16* b,
                                      const __hip_bfloat16* c, __hip_bfloat16* out, int n) {
  arithmetic<<<GRID(n)>>>(a, b, c, out, n);
  return hipGetLastError();
}
hipError_t launch_comparisons_half(const __half* a, const __half* b, int* out, int n) {
  comparisons<<<GRID(n)>>>(a, b, out, n);
  return hipGetLastError();
}
hipError_t launch_comparisons_bfloat16(const __hip_bfloat16* a, const __hip_bfloat16* b, int* out,
                                       int n) {
  comparisons<<<GRID(n)>>>(a, b, out, n);
  return hipGetLastError();
}
hipError_t launch_functions_half(const __half* in, __half* out, int n) {
  functions<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_functions_bfloat16(const __hip_bfloat16* in, __hip_bfloat16* out, int n) {
  functions<<<GRID(n)>>>(in, out, n);
  return hipGetLastError();
}
hipError_t launch_mixed(const __half* in, float* out, __half* halves, int n) {
  mixed<<<1, n>>>(in, out, halves);
  return hipGetLastError();
}
hipError_t launch_pairs(const __half2* a, const __half2* b, __half2* out, float2* wide, int n) {
  pairs<<<1, n>>>(a, b, out, wide);
  return hipGetLastError();
}

}
