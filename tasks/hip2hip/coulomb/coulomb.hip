// Forces between all pairs of atoms: one thread an atom, with the others a block at a time in
// shared memory.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 128;

__global__ void interact(const float* atom, float* force, float* energy, int64_t n) {
  __shared__ float others[kThreads][4];
  const int64_t own = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  float at[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (own < n) {
    for (int d = 0; d < 4; ++d) {
      at[d] = atom[own * 4 + d];
    }
  }
  float sum[3] = {0.0f, 0.0f, 0.0f};
  float potential = 0.0f;
  for (int64_t start = 0; start < n; start += kThreads) {
    const int64_t loaded = start + threadIdx.x;
    for (int d = 0; d < 4; ++d) {
      others[threadIdx.x][d] = loaded < n ? atom[loaded * 4 + d] : 0.0f;
    }
    __syncthreads();
    float part[3] = {0.0f, 0.0f, 0.0f};
    float part_potential = 0.0f;
    for (int i = 0; i < kThreads; ++i) {
      const float x = at[0] - others[i][0];
      const float y = at[1] - others[i][1];
      const float z = at[2] - others[i][2];
      const float inverse = 1.0f / sqrtf(x * x + y * y + z * z + 0.01f);
      const float weight = others[i][3] * inverse;
      const float pull = weight * inverse * inverse;
      part[0] += pull * x;
      part[1] += pull * y;
      part[2] += pull * z;
      part_potential += start + i == own ? 0.0f : weight;
    }
    for (int d = 0; d < 3; ++d) {
      sum[d] += part[d];
    }
    potential += part_potential;
    __syncthreads();
  }
  if (own < n) {
    for (int d = 0; d < 3; ++d) {
      force[own * 3 + d] = at[3] * sum[d];
    }
    energy[own] = at[3] * potential;
  }
}

hipError_t coulomb(const float* atom, float* force, float* energy, int64_t n, hipStream_t stream) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  interact<<<dim3((unsigned)blocks), dim3(kThreads), 0, stream>>>(atom, force, energy, n);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t coulomb_f32(const float* atom, float* force, float* energy, int64_t n,
                                  hipStream_t stream) {
  return coulomb(atom, force, energy, n, stream);
}
