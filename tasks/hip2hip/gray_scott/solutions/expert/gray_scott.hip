// Several steps a pass, in registers: 32 lanes hold 4 columns each and go down the rows. A row that
// comes in is advanced by one step as soon as the row below it is there, by a second step one row
// later, and so on: of each step a lane keeps what the row before had for the next. Neighbours
// across come from other lanes, by shuffles. What lies within as many columns of the ends as there
// are steps comes out wrong and is not written, unless the lanes hold all columns: then the first
// and the last are neighbours.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;  // lanes that work together, also in waves of 64
#ifdef __HIP_PLATFORM_NVIDIA__
constexpr int kWaves = 1;  // of a block: that its lanes go the same way is known to the compiler
constexpr int kResident = 8;  // blocks of a processor, in any case
#else
constexpr int kWaves = 2;
constexpr int kResident = 1;
#endif
constexpr int kThreads = kWave * kWaves;
constexpr int kCols = 4;  // of a lane
constexpr int kAcross = kWave * kCols;
constexpr int kMostSteps = 8;  // in a pass
constexpr int kAhead = 2;      // rows that are requested before they are needed

__device__ float limited(float share) {
#ifdef __HIP_PLATFORM_NVIDIA__
  return __saturatef(share);
#else
  return fminf(fmaxf(share, 0.0f), 1.0f);
#endif
}

// Another lane's value. All lanes are there: to ask which are, and to allow for others, would cost
// a branch each time, across which nothing is moved to hide how long a shuffle takes.
__device__ float of_lane(float value, int lane) {
#ifdef __HIP_PLATFORM_NVIDIA__
  return __shfl_sync(0xffffffffu, value, lane);
#else
  return __shfl(value, lane, kWave);
#endif
}

struct Row {
  float u[kCols], v[kCols];
};

template <bool kPacks> __device__ void read(float* to, const float* row, const int* cols) {
  if constexpr (kPacks) {
    const float4 pack = *reinterpret_cast<const float4*>(row + cols[0]);
    to[0] = pack.x, to[1] = pack.y, to[2] = pack.z, to[3] = pack.w;
  } else {
#pragma unroll
    for (int j = 0; j < kCols; ++j) to[j] = row[cols[j]];
  }
}

template <int kSteps, bool kPacks>
__global__ __launch_bounds__(kThreads, kResident) void advance(
    const float* __restrict__ u, const float* __restrict__ v, const float* __restrict__ feed,
    const float* __restrict__ kill, float* __restrict__ u_new, float* __restrict__ v_new, int rows,
    int cols, int border, int down, int parts) {
  const int lane = threadIdx.x % kWave;
  const int part = (int)blockIdx.y * kWaves + (kWaves > 1 ? (int)threadIdx.x / kWave : 0);
  if (part >= parts) return;
  const int64_t start = (int64_t)blockIdx.z * rows * cols;
  const float fed = feed[blockIdx.z], lost = fed + kill[blockIdx.z];
  const float spent = fed - (1.0f - 0.32f), keep_v = 1.0f - 0.16f - lost;

  const int left = (int)blockIdx.x * (kAcross - 2 * border) - border + lane * kCols;
  int places[kCols];
  bool ours[kCols];
#pragma unroll
  for (int j = 0; j < kCols; ++j) {
    const int within = lane * kCols + j;
    places[j] = ((left + j) % cols + cols) % cols;
    ours[j] = within >= border && within < kAcross - border && left + j < cols;
  }
  const int top = part * down - kSteps;
  const int end = (part + 1) * down < rows ? down + 2 * kSteps : rows - part * down + 2 * kSteps;
  int row = (top % rows + rows) % rows;

  Row ahead[kAhead];
  const auto request = [&](Row& into) {
    const int64_t from = start + (int64_t)row * cols;
    read<kPacks>(into.u, u + from, places);
    read<kPacks>(into.v, v + from, places);
    row = row + 1 < rows ? row + 1 : 0;
  };
#pragma unroll
  for (int a = 0; a < kAhead; ++a) request(ahead[a]);

  // After each step: the last row's own values with a quarter of those beside them, and its next
  // values as far as they do not depend on the row below.
  Row mixed[kSteps] = {}, begun[kSteps] = {};
  const int before = (lane + kWave - 1) % kWave, after = (lane + 1) % kWave;
  // Two rows a turn: else each turn moves what is kept to other registers.
#pragma unroll (kPacks ? 2 : 1)
  for (int i = 0; i < end; ++i) {
    Row now = ahead[0];
#pragma unroll
    for (int a = 1; a < kAhead; ++a) ahead[a - 1] = ahead[a];
    if (i + kAhead < end) request(ahead[kAhead - 1]);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const float left_u = of_lane(now.u[kCols - 1], before);
      const float left_v = of_lane(now.v[kCols - 1], before);
      const float right_u = of_lane(now.u[0], after);
      const float right_v = of_lane(now.v[0], after);
      Row next;
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        const float own_u = now.u[j], own_v = now.v[j];
        const float beside_u =
            (j > 0 ? now.u[j - 1] : left_u) + (j + 1 < kCols ? now.u[j + 1] : right_u);
        const float beside_v =
            (j > 0 ? now.v[j - 1] : left_v) + (j + 1 < kCols ? now.v[j + 1] : right_v);
        const float mixed_u = fmaf(0.25f, beside_u, own_u);
        const float mixed_v = fmaf(0.25f, beside_v, own_v);
        next.u[j] = limited(fmaf(0.32f * 0.2f, mixed_u, begun[s].u[j]));
        next.v[j] = limited(fmaf(0.16f * 0.2f, mixed_v, begun[s].v[j]));
        const float both = own_u * own_v;
        const float base_u = fmaf(
            0.32f * 0.2f, mixed[s].u[j] + beside_u, fmaf(spent, 1.0f - own_u, 1.0f - 0.32f));
        const float base_v = fmaf(0.16f * 0.2f, mixed[s].v[j] + beside_v, keep_v * own_v);
        begun[s].u[j] = fmaf(-both, own_v, base_u);
        begun[s].v[j] = fmaf(both, own_v, base_v);
        mixed[s].u[j] = mixed_u;
        mixed[s].v[j] = mixed_v;
      }
      now = next;
    }
    if (i < 2 * kSteps) continue;
    const int64_t to = start + (int64_t)(top + i - kSteps) * cols + left;
    if constexpr (kPacks) {
      if (ours[0]) {
        *reinterpret_cast<float4*>(u_new + to) =
            make_float4(now.u[0], now.u[1], now.u[2], now.u[3]);
        *reinterpret_cast<float4*>(v_new + to) =
            make_float4(now.v[0], now.v[1], now.v[2], now.v[3]);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        if (ours[j]) u_new[to + j] = now.u[j], v_new[to + j] = now.v[j];
      }
    }
  }
}

// How a pass divides the rows, and about how many cycles it takes.
struct Plan {
  int64_t parts, down;
  double cycles;
};

int64_t border_of(int64_t cols, int steps, bool packs) {
  if (cols == kAcross) return 0;
  return packs ? (steps + kCols - 1) / kCols * kCols : steps;
}

Plan plan(int64_t batch, int64_t rows, int64_t cols, int steps, bool packs) {
  constexpr double kSchedulers = 528, kBytesACycle = 2000;
  const int64_t across = kAcross - 2 * border_of(cols, steps, packs);
  const int64_t strips = batch * ((cols + across - 1) / across);
  Plan best{1, rows, 1e30};
  for (int waves = 1; waves <= 4; ++waves) {  // of a scheduler
    int64_t parts = (int64_t)(kSchedulers * waves) / strips;
    if (parts > rows) parts = rows;
    if (parts < 1) parts = 1;
    const int64_t down = (rows + parts - 1) / parts;
    parts = (rows + down - 1) / down;
    // A row of one warp waits for shuffles; rows of several warps take turns.
    const int64_t shares = (int64_t)((double)(strips * parts) / kSchedulers + 0.999);
    const double turn = shares <= 1 ? 95.0 * steps + 100.0 : (76.0 * steps + 50.0) * (double)shares;
    const double cycles = turn * (double)(down + 2 * steps);
    if (cycles < best.cycles) best = Plan{parts, down, cycles};
  }
  const double cells = (double)batch * rows * cols, memory = cells * 16 / kBytesACycle;
  if (cells > 2e6 && best.cycles < memory) best.cycles = memory;
  best.cycles += 3000.0;  // until a pass has begun
  return best;
}

size_t gray_scott_workspace(int64_t batch, int64_t rows, int64_t cols, int64_t) {
  return 2 * batch * rows * cols * sizeof(float);
}

hipError_t gray_scott(const float* u, const float* v, const float* feed, const float* kill,
                      float* u_new, float* v_new, int64_t batch, int64_t rows, int64_t cols,
                      int64_t steps, void* workspace, hipStream_t stream) {
  float* spare_u = static_cast<float*>(workspace);
  float* spare_v = spare_u + batch * rows * cols;
  const uintptr_t places = (uintptr_t)u | (uintptr_t)v | (uintptr_t)u_new | (uintptr_t)v_new |
                           (uintptr_t)workspace;
  const bool packs = cols % kCols == 0 && places % 16 == 0;
  int64_t passes = 0;
  double least = 1e30;
  for (int64_t p = (steps + kMostSteps - 1) / kMostSteps; p <= steps; ++p) {
    const double cycles =
        (double)p * plan(batch, rows, cols, (int)((steps + p - 1) / p), packs).cycles;
    if (cycles < least) least = cycles, passes = p;
  }
  for (; passes > 0; --passes) {
    const int of_pass = (int)((steps + passes - 1) / passes);  // passes are about as long
    float* to_u = passes % 2 == 1 ? u_new : spare_u;  // the last writes the outputs
    float* to_v = passes % 2 == 1 ? v_new : spare_v;
    const Plan rows_of = plan(batch, rows, cols, of_pass, packs);
    const int64_t border = border_of(cols, of_pass, packs), across = kAcross - 2 * border;
    const dim3 blocks((unsigned)((cols + across - 1) / across),
                      (unsigned)((rows_of.parts + kWaves - 1) / kWaves), (unsigned)batch);
    const auto start = [&](auto kernel) {
      kernel<<<blocks, dim3(kThreads), 0, stream>>>(u, v, feed, kill, to_u, to_v, (int)rows,
                                                    (int)cols, (int)border, (int)rows_of.down,
                                                    (int)rows_of.parts);
    };
    switch (of_pass) {
      case 1: packs ? start(advance<1, true>) : start(advance<1, false>); break;
      case 2: packs ? start(advance<2, true>) : start(advance<2, false>); break;
      case 3: packs ? start(advance<3, true>) : start(advance<3, false>); break;
      case 4: packs ? start(advance<4, true>) : start(advance<4, false>); break;
      case 5: packs ? start(advance<5, true>) : start(advance<5, false>); break;
      case 6: packs ? start(advance<6, true>) : start(advance<6, false>); break;
      case 7: packs ? start(advance<7, true>) : start(advance<7, false>); break;
      default: packs ? start(advance<8, true>) : start(advance<8, false>); break;
    }
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
