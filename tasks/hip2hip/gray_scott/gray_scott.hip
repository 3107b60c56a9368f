// Steps of reaction and diffusion: one launch a step with a thread for each element, which reads
// its neighbours from global memory. Steps alternate between the outputs and the workspace.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kAcross = 32;
constexpr int kDown = 8;

__device__ float limited(float share) { return fminf(fmaxf(share, 0.0f), 1.0f); }

__global__ void advance(const float* u, const float* v, const float* feed, const float* kill,
                        float* u_new, float* v_new, int64_t rows, int64_t cols) {
  const int64_t col = (int64_t)blockIdx.x * kAcross + threadIdx.x;
  const int64_t row = (int64_t)blockIdx.y * kDown + threadIdx.y;
  if (row >= rows || col >= cols) {
    return;
  }
  const int64_t start = blockIdx.z * rows * cols;
  const int64_t here = start + row * cols;
  const int64_t above = start + (row > 0 ? row - 1 : rows - 1) * cols;
  const int64_t below = start + (row + 1 < rows ? row + 1 : 0) * cols;
  const int64_t left = col > 0 ? col - 1 : cols - 1;
  const int64_t right = col + 1 < cols ? col + 1 : 0;

  const float own_u = u[here + col];
  const float own_v = v[here + col];
  const float lap_u =
      0.2f * (u[here + left] + u[here + right] + u[above + col] + u[below + col]) +
      0.05f * (u[above + left] + u[above + right] + u[below + left] + u[below + right]) - own_u;
  const float lap_v =
      0.2f * (v[here + left] + v[here + right] + v[above + col] + v[below + col]) +
      0.05f * (v[above + left] + v[above + right] + v[below + left] + v[below + right]) - own_v;
  const float reaction = own_u * own_v * own_v;
  const float fed = feed[blockIdx.z];
  u_new[here + col] = limited(own_u + 0.32f * lap_u - reaction + fed * (1.0f - own_u));
  v_new[here + col] =
      limited(own_v + 0.16f * lap_v + reaction - (fed + kill[blockIdx.z]) * own_v);
}

size_t gray_scott_workspace(int64_t batch, int64_t rows, int64_t cols, int64_t steps) {
  return 2 * batch * rows * cols * sizeof(float);
}

hipError_t gray_scott(const float* u, const float* v, const float* feed, const float* kill,
                      float* u_new, float* v_new, int64_t batch, int64_t rows, int64_t cols,
                      int64_t steps, void* workspace, hipStream_t stream) {
  float* spare_u = (float*)workspace;
  float* spare_v = spare_u + batch * rows * cols;
  const dim3 blocks((unsigned)((cols + kAcross - 1) / kAcross),
                    (unsigned)((rows + kDown - 1) / kDown), (unsigned)batch);
  for (int64_t step = 0; step < steps; ++step) {
    const bool last = (steps - 1 - step) % 2 == 0;  // this step writes the outputs
    float* to_u = last ? u_new : spare_u;
    float* to_v = last ? v_new : spare_v;
    advance<<<blocks, dim3(kAcross, kDown), 0, stream>>>(u, v, feed, kill, to_u, to_v, rows, cols);
    u = to_u;
    v = to_v;
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t gray_scott_f32(const float* u, const float* v, const float* feed,
                                     const float* kill, float* u_new, float* v_new, int64_t batch,
                                     int64_t rows, int64_t cols, int64_t steps, void* workspace,
                                     hipStream_t stream) {
  return gray_scott(u, v, feed, kill, u_new, v_new, batch, rows, cols, steps, workspace, stream);
}

extern "C" size_t gray_scott_f32_workspace(int64_t batch, int64_t rows, int64_t cols,
                                           int64_t steps) {
  return gray_scott_workspace(batch, rows, cols, steps);
}
