// Several steps a pass: a block brings a tile of both substances with a border as wide as there are
// steps to shared memory, and advances it there. Each step takes one cell on every side off what is
// right; what is left after the last is written. A thread goes down a column, with what it needs of
// the two rows above in registers.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kAcross = 64, kStrips = 4, kThreads = kAcross * kStrips;
constexpr int kOfStrip = 12;  // rows of a thread
constexpr int kDown = kStrips * kOfStrip;
constexpr int kMostSteps = 4;  // in a pass

__device__ float limited(float share) { return fminf(fmaxf(share, 0.0f), 1.0f); }

// What a row of a substance has for a cell: its own value and the sum of its neighbours.
struct Trio {
  float own, beside;
};

__device__ Trio trio(const float* cell) { return Trio{cell[0], cell[-1] + cell[1]}; }

__device__ float laplacian(const Trio& above, const Trio& here, const Trio& below) {
  return 0.2f * (here.beside + (above.own + below.own)) + 0.05f * (above.beside + below.beside) -
         here.own;
}

__global__ __launch_bounds__(kThreads) void advance(
    const float* __restrict__ u, const float* __restrict__ v, const float* __restrict__ feed,
    const float* __restrict__ kill, float* __restrict__ u_new, float* __restrict__ v_new, int rows,
    int cols, int steps) {
  __shared__ float tiles[2][2][kDown * kAcross];
  const int x = threadIdx.x % kAcross, strip = threadIdx.x / kAcross * kOfStrip;
  const int left = (int)blockIdx.x * (kAcross - 2 * steps) - steps;
  const int top = (int)blockIdx.y * (kDown - 2 * steps) - steps;
  const int64_t start = (int64_t)blockIdx.z * rows * cols;
  const float fed = feed[blockIdx.z], lost = fed + kill[blockIdx.z];

  const int col = ((left + x) % cols + cols) % cols;
  int row = ((top + strip) % rows + rows) % rows;
#pragma unroll
  for (int i = 0; i < kOfStrip; ++i) {
    const int64_t from = start + (int64_t)row * cols + col;
    tiles[0][0][(strip + i) * kAcross + x] = u[from];
    tiles[0][1][(strip + i) * kAcross + x] = v[from];
    row = row + 1 < rows ? row + 1 : 0;
  }

  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    // Cells whose neighbours are right so far.
    const int first = strip > step ? strip : step + 1, least = step + 1;
    const int end = strip + kOfStrip < kDown - least ? strip + kOfStrip : kDown - least;
    if (x < least || x >= kAcross - least) continue;
    const float* from_u = tiles[step % 2][0] + x;
    const float* from_v = tiles[step % 2][1] + x;
    float* to_u = tiles[1 - step % 2][0] + x;
    float* to_v = tiles[1 - step % 2][1] + x;
    const bool last = step == steps - 1;
    Trio above_u = trio(from_u + (first - 1) * kAcross), u_here = trio(from_u + first * kAcross);
    Trio above_v = trio(from_v + (first - 1) * kAcross), v_here = trio(from_v + first * kAcross);
#pragma unroll 4
    for (int y = first; y < end; ++y) {
      const Trio below_u = trio(from_u + (y + 1) * kAcross);
      const Trio below_v = trio(from_v + (y + 1) * kAcross);
      const float own_u = u_here.own, own_v = v_here.own;
      const float lap_u = laplacian(above_u, u_here, below_u);
      const float lap_v = laplacian(above_v, v_here, below_v);
      const float reaction = own_u * own_v * own_v;
      const float next_u = limited(own_u + 0.32f * lap_u - reaction + fed * (1.0f - own_u));
      const float next_v = limited(own_v + 0.16f * lap_v + reaction - lost * own_v);
      if (!last) {
        to_u[y * kAcross] = next_u;
        to_v[y * kAcross] = next_v;
      } else if (top + y < rows && left + x < cols) {
        const int64_t to = start + (int64_t)(top + y) * cols + left + x;
        u_new[to] = next_u;
        v_new[to] = next_v;
      }
      above_u = u_here, u_here = below_u;
      above_v = v_here, v_here = below_v;
    }
  }
}

size_t gray_scott_workspace(int64_t batch, int64_t rows, int64_t cols, int64_t) {
  return 2 * batch * rows * cols * sizeof(float);
}

hipError_t gray_scott(const float* u, const float* v, const float* feed, const float* kill,
                      float* u_new, float* v_new, int64_t batch, int64_t rows, int64_t cols,
                      int64_t steps, void* workspace, hipStream_t stream) {
  float* spare_u = static_cast<float*>(workspace);
  float* spare_v = spare_u + batch * rows * cols;
  for (int64_t passes = (steps + kMostSteps - 1) / kMostSteps; passes > 0; --passes) {
    const int of_pass = (int)((steps + passes - 1) / passes);  // passes are about as long
    float* to_u = passes % 2 == 1 ? u_new : spare_u;  // the last writes the outputs
    float* to_v = passes % 2 == 1 ? v_new : spare_v;
    const int64_t across = kAcross - 2 * of_pass, down = kDown - 2 * of_pass;
    const dim3 blocks((unsigned)((cols + across - 1) / across),
                      (unsigned)((rows + down - 1) / down), (unsigned)batch);
    advance<<<blocks, dim3(kThreads), 0, stream>>>(u, v, feed, kill, to_u, to_v, (int)rows,
                                                   (int)cols, of_pass);
    steps -= of_pass;
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
