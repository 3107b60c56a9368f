// Steps of the wave equation: one launch a step, one thread a cell. Outputs and a workspace take
// turns, so that the last two steps end up in the outputs.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWide = 32;
constexpr int kHigh = 8;

__global__ void advance(const float* now, const float* before, const float* courant, float* later,
                        int64_t height, int64_t width) {
  const int64_t col = (int64_t)blockIdx.x * kWide + threadIdx.x;
  const int64_t row = (int64_t)blockIdx.y * kHigh + threadIdx.y;
  if (row >= height || col >= width) {
    return;
  }
  const int64_t cell = row * width + col;
  const int64_t i = blockIdx.z * height * width + cell;
  const float here = now[i];
  const float left = col > 0 ? now[i - 1] : 0.0f;
  const float right = col + 1 < width ? now[i + 1] : 0.0f;
  const float up = row > 0 ? now[i - width] : 0.0f;
  const float down = row + 1 < height ? now[i + width] : 0.0f;
  const float speed = courant[cell];
  const float bend = left + right + up + down - 4.0f * here;
  later[i] = 2.0f * here - before[i] + speed * speed * bend;
}

size_t acoustic_wave_workspace(int64_t batch, int64_t height, int64_t width, int64_t steps) {
  return 2 * batch * height * width * sizeof(float);
}

hipError_t acoustic_wave(const float* now, const float* before, const float* courant, float* later,
                         float* now_later, int64_t batch, int64_t height, int64_t width,
                         int64_t steps, void* workspace, hipStream_t stream) {
  const int64_t total = batch * height * width;
  float* spare[2] = {(float*)workspace, (float*)workspace + total};
  const dim3 grid((unsigned)((width + kWide - 1) / kWide), (unsigned)((height + kHigh - 1) / kHigh),
                  (unsigned)batch);
  for (int64_t step = 1; step <= steps; ++step) {
    float* to = step == steps ? later : step == steps - 1 ? now_later : spare[step % 2];
    advance<<<grid, dim3(kWide, kHigh), 0, stream>>>(now, before, courant, to, height, width);
    before = now;
    now = to;
  }
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t acoustic_wave_f32(const float* now, const float* before, const float* courant,
                                        float* later, float* now_later, int64_t batch,
                                        int64_t height, int64_t width, int64_t steps,
                                        void* workspace, hipStream_t stream) {
  return acoustic_wave(now, before, courant, later, now_later, batch, height, width, steps,
                       workspace, stream);
}

extern "C" size_t acoustic_wave_f32_workspace(int64_t batch, int64_t height, int64_t width,
                                              int64_t steps) {
  return acoustic_wave_workspace(batch, height, width, steps);
}
