// Mathematical and integer functions under HIP's names.
#include <hip/hip_runtime.h>

__global__ void floats(const float* in, float* out) {
  const float x = in[threadIdx.x];
  float* row = out + threadIdx.x * 20;
  row[0] = __expf(x);
  row[1] = __logf(x);
  row[2] = rsqrtf(x);
  row[3] = fmaf(x, x, 1.0f);
  row[4] = erff(x);
  row[5] = tanhf(x);
  row[6] = __powf(x, 1.5f);
  row[7] = exp(x);
  row[8] = max(x, 1.0f) + min(x, 2.0f);
  row[9] = __saturatef(x - 1.0f);
  row[10] = __fdividef(1.0f, x);
  row[11] = normcdff(x);
  row[12] = sinpif(x);
  row[13] = cospif(x);
  row[14] = rsqrt(x);
  row[15] = __builtin_amdgcn_rcpf(x);
  row[16] = __fadd_rn(__fmul_rn(x, x), 1.0f);
  row[17] = __uint_as_float(__float_as_uint(x) ^ 0x80000000u);
  row[18] = fabsf(-x) + abs(-x);
  float cosine = 0.0f;
  sincosf(x, &row[19], &cosine);
  row[19] += cosine;
}

__global__ void integers(const unsigned* in, long long* out) {
  const unsigned x = in[threadIdx.x];
  long long* row = out + threadIdx.x * 16;
  row[0] = __popc(x);
  row[1] = __clz(static_cast<int>(x));
  row[2] = __ffs(static_cast<int>(x));
  row[3] = __brev(x);
  row[4] = __popcll(static_cast<unsigned long long>(x) << 32 | x);
  row[5] = __clzll(x);
  row[6] = __umulhi(x, x);
  row[7] = static_cast<long long>(__umul64hi(static_cast<unsigned long long>(x) << 32, x));
  row[8] = __mul24(static_cast<int>(x), 3);
  row[9] = __byte_perm(x, 0x01020304, 0x7210);
  row[10] = __funnelshift_l(x, x, 8);
  row[11] = __float2int_rn(x * 0.5f);
  row[12] = __usad(x, 1000, 1);
  row[13] = max(static_cast<int>(x & 255), 17) + min(x & 255, 3);
  row[14] = __double_as_longlong(__longlong_as_double(x));
  row[15] = __mulhi(static_cast<int>(x), 1 << 30);
}

extern "C" {

hipError_t launch_floats(const float* in, float* out, int n) {
  floats<<<1, n>>>(in, out);
  return hipGetLastError();
}

hipError_t launch_integers(const unsigned* in, long long* out, int n) {
  integers<<<1, n>>>(in, out);
  return hipGetLastError();
}

}
