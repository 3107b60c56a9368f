// What no processor computes by itself: each function writes its results for one set of operands.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>
#include <string.h>

using Wide = unsigned __int128;
using Signed = __int128;
#if defined(__x86_64__)
using Quad = __float128;
#else
using Quad = long double;
#endif

template <class To, class From>
__device__ void put(char*& out, From value) {
  const To converted = static_cast<To>(value);
  memcpy(out, &converted, sizeof converted);
  out += 16;
}

__global__ void from_double(const double* in, char* out, int count) {
  for (int i = 0; i < count; ++i) {
    put<_Float16>(out, in[i]);
    put<float>(out, in[i]);
    put<Quad>(out, in[i]);
    put<double>(out, static_cast<Quad>(in[i]));
    put<_Float16>(out, static_cast<Quad>(in[i]));
    put<Signed>(out, in[i]);
    put<Signed>(out, static_cast<Quad>(in[i]));
    put<Wide>(out, in[i] < 0 ? -in[i] : in[i]);
    const __half half = __float2half((float)in[i]);
    memcpy(out, &half, 2), out += 16;
#if defined(__clang__)
    put<__bf16>(out, in[i]);
#else
    out += 16;
#endif
  }
}

__global__ void from_integer(const Signed* in, char* out, int count) {
  for (int i = 0; i < count; ++i) {
    put<_Float16>(out, in[i]);
    put<float>(out, in[i]);
    put<double>(out, in[i]);
    put<Quad>(out, in[i]);
    put<float>(out, static_cast<Wide>(in[i]));
    put<double>(out, static_cast<Wide>(in[i]));
  }
}

__global__ void divide(const Signed* in, Signed* out, int count) {
  for (int i = 0; i + 1 < count; ++i, out += 4) {
    out[0] = in[i] / in[i + 1];
    out[1] = in[i] % in[i + 1];
    out[2] = static_cast<Wide>(in[i]) / static_cast<Wide>(in[i + 1]);
    out[3] = static_cast<Wide>(in[i]) % static_cast<Wide>(in[i + 1]);
  }
}

__global__ void calculate(const Quad* in, Quad* out, int count) {
  for (int i = 0; i + 1 < count; ++i, out += 5) {
    out[0] = in[i] + in[i + 1];
    out[1] = in[i] - in[i + 1];
    out[2] = in[i] * in[i + 1];
    out[3] = in[i] / in[i + 1];
    out[4] = (in[i] < in[i + 1]) + 2 * (in[i] == in[i + 1]) + 4 * (in[i] >= in[i + 1]);
  }
}

__global__ void complex(const double* in, double* out) {
  _Complex double a, b;
  __real__ a = in[0], __imag__ a = in[1], __real__ b = in[2], __imag__ b = in[3];
  const _Complex double product = a * b, quotient = a / b;
  out[0] = __real__ product, out[1] = __imag__ product;
  out[2] = __real__ quotient, out[3] = __imag__ quotient;
  out[4] = __builtin_powi(in[0], static_cast<int>(in[4]));
}

extern "C" hipError_t convert(const double* in, char* out, int count) {
  from_double<<<1, 1>>>(in, out, count);
  return hipDeviceSynchronize();
}
extern "C" hipError_t convert_integers(const Signed* in, char* out, int count) {
  from_integer<<<1, 1>>>(in, out, count);
  return hipDeviceSynchronize();
}
extern "C" hipError_t divide_integers(const Signed* in, Signed* out, int count) {
  divide<<<1, 1>>>(in, out, count);
  return hipDeviceSynchronize();
}
extern "C" hipError_t calculate_quads(const Quad* in, Quad* out, int count) {
  calculate<<<1, 1>>>(in, out, count);
  return hipDeviceSynchronize();
}
extern "C" hipError_t calculate_complex(const double* in, double* out) {
  complex<<<1, 1>>>(in, out);
  return hipDeviceSynchronize();
}
