// Gradients of a step of an LSTM in one pass over all tensors, with the sums over rows made on the
// way: a block has 128 columns of all four gates, and its eight teams of 32 lanes go down over
// rows, with the sums of their columns in registers. The block adds up its teams in shared memory
// and writes one row of sums to the workspace; a second kernel adds these up, in an order that is
// always the same.
//
// With e = exp(-|x|), which is at most 1, and r = 1 / (1 + e), a sigmoid is r or e * r, and its
// slope e * r * r: one exponential and one fast division each, and nothing overflows. tanh is made
// of the same for 2 x.
//
// Where rows are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source for
// waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;  // lanes of a team, also in waves of 64
constexpr int kTeams = 8, kThreads = kWave * kTeams;
constexpr int kOfLane = 4;              // columns of a lane: 16 bytes of float32
constexpr int kSpan = kWave * kOfLane;  // columns of a block
constexpr int kGates = 4;               // in, forget, candidate, out
constexpr int kResident = 3;            // blocks of a processor
constexpr int64_t kMaxBlocks = 1280;

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ T from_float(float v);
template <> __device__ float from_float<float>(float v) { return v; }
template <> __device__ __half from_float<__half>(float v) { return __float2half(v); }
template <> __device__ __hip_bfloat16 from_float<__hip_bfloat16>(float v) {
  return __float2bfloat16(v);
}

// The word that has so many bytes.
template <int kBytes> struct Word;
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint2; };
template <> struct Word<16> { using Type = uint4; };

// Elements that are moved as one word: a compiler may cut a copy of the elements into pieces.
template <class T, int kPack> union Pack {
  typename Word<kPack * sizeof(T)>::Type bits;
  T v[kPack];
};

template <class T, int kPack> __device__ Pack<T, kPack> read(const T* from) {
  Pack<T, kPack> pack;
  pack.bits = reinterpret_cast<const Pack<T, kPack>*>(from)->bits;
  return pack;
}

template <class T, int kPack> __device__ void write(T* to, const Pack<T, kPack>& pack) {
  reinterpret_cast<Pack<T, kPack>*>(to)->bits = pack.bits;
}

// What a function is at a place, and its derivative there.
struct Curve {
  float value, slope;
};

__device__ Curve sigmoid(float x) {
  const float e = __expf(-fabsf(x)), r = __fdividef(1.0f, 1.0f + e), er = e * r;
  return {x < 0.0f ? er : r, er * r};
}

__device__ Curve hyperbolic(float x) {
  const float e = __expf(-2.0f * fabsf(x)), r = __fdividef(1.0f, 1.0f + e);
  return {copysignf((1.0f - e) * r, x), 4.0f * (e * r) * r};
}

template <class T, int kPack>
__global__ __launch_bounds__(kThreads, kResident) void gradients(
    const T* __restrict__ gates, const float* __restrict__ c_old, const T* __restrict__ dh,
    const float* __restrict__ dc_next, T* __restrict__ dgates, float* __restrict__ dc_old,
    float* __restrict__ partial, int64_t rows, int64_t rows_of_block, int hidden) {
  constexpr int kItems = kOfLane / kPack;
  __shared__ float joined[kTeams][kGates * kSpan];
  const int lane = threadIdx.x % kWave, team = threadIdx.x / kWave;
  const int first = (int)blockIdx.x * kSpan;
  const auto within = [&](int item) { return (item * kWave + lane) * kPack; };  // of the block's

  float sums[kGates][kItems][kPack] = {};
  const int64_t start = blockIdx.y * rows_of_block;
  const int64_t end = start + rows_of_block < rows ? start + rows_of_block : rows;
  for (int64_t row = start + team; row < end; row += kTeams) {
    Pack<T, kPack> gate[kGates][kItems], of_h[kItems];
    Pack<float, kPack> cell[kItems], later[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int col = first + within(i);
      if (col >= hidden) continue;
#pragma unroll
      for (int k = 0; k < kGates; ++k) {
        gate[k][i] = read<T, kPack>(gates + (row * kGates + k) * hidden + col);
      }
      of_h[i] = read<T, kPack>(dh + row * hidden + col);
      cell[i] = read<float, kPack>(c_old + row * hidden + col);
      later[i] = read<float, kPack>(dc_next + row * hidden + col);
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int col = first + within(i);
      if (col >= hidden) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const Curve take = sigmoid(to_float(gate[0][i].v[j]));
        const Curve keep = sigmoid(to_float(gate[1][i].v[j]));
        const Curve fresh = hyperbolic(to_float(gate[2][i].v[j]));
        const Curve show = sigmoid(to_float(gate[3][i].v[j]));
        const float old = cell[i].v[j], gradient = to_float(of_h[i].v[j]);
        const Curve seen = hyperbolic(keep.value * old + take.value * fresh.value);
        const float dc = later[i].v[j] + gradient * show.value * seen.slope;
        const float results[kGates] = {dc * fresh.value * take.slope, dc * old * keep.slope,
                                       dc * take.value * fresh.slope,
                                       gradient * seen.value * show.slope};
        // Results take the places of what they were made from.
#pragma unroll
        for (int k = 0; k < kGates; ++k) {
          sums[k][i][j] += results[k];
          gate[k][i].v[j] = from_float<T>(results[k]);
        }
        cell[i].v[j] = dc * keep.value;
      }
#pragma unroll
      for (int k = 0; k < kGates; ++k) {
        write<T, kPack>(dgates + (row * kGates + k) * hidden + col, gate[k][i]);
      }
      write<float, kPack>(dc_old + row * hidden + col, cell[i]);
    }
  }

#pragma unroll
  for (int k = 0; k < kGates; ++k) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      Pack<float, kPack> part;
#pragma unroll
      for (int j = 0; j < kPack; ++j) part.v[j] = sums[k][i][j];
      write<float, kPack>(&joined[team][k * kSpan + within(i)], part);
    }
  }
  __syncthreads();
  float* out = partial + (int64_t)blockIdx.y * kGates * hidden;
#pragma unroll
  for (int at = threadIdx.x; at < kGates * kSpan; at += kThreads) {
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < kTeams; ++t) sum += joined[t][at];
    const int col = first + at % kSpan;
    if (col < hidden) out[at / kSpan * hidden + col] = sum;
  }
}

// A block adds up the sums of kWave columns; each of its waves those of every kWave-th row of them.
__global__ __launch_bounds__(kWave * kWave) void finish(const float* __restrict__ partial,
                                                        float* __restrict__ dbias, int parts,
                                                        int cols) {
  __shared__ float sums[kWave][kWave + 1];
  const int lane = threadIdx.x % kWave, wave = threadIdx.x / kWave;
  const int col = blockIdx.x * kWave + lane;
  float sum = 0.0f;
  if (col < cols) {
#pragma unroll 4
    for (int part = wave; part < parts; part += kWave) sum += partial[(int64_t)part * cols + col];
  }
  sums[wave][lane] = sum;
  __syncthreads();
  sum = sums[lane][wave];
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor(sum, distance, kWave);
  }
  if (lane == 0 && blockIdx.x * kWave + wave < cols) dbias[blockIdx.x * kWave + wave] = sum;
}

// Into how many parts rows are cut for so many blocks: each has a turn of its teams at least.
int64_t most_parts(int64_t rows, int64_t hidden, int64_t blocks) {
  const int64_t spans = (hidden + kSpan - 1) / kSpan, turns = (rows + kTeams - 1) / kTeams;
  const int64_t parts = blocks / spans > 0 ? blocks / spans : 1;
  return parts < turns ? parts : turns;
}

template <class T>
hipError_t lstm_cell_backward(const T* gates, const float* c_old, const T* dh, const float* dc_next,
                              T* dgates, float* dc_old, float* dbias, int64_t rows, int64_t hidden,
                              void* workspace, hipStream_t stream) {
  int device = 0, processors = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  int64_t blocks = (int64_t)processors * kResident;
  if (blocks > kMaxBlocks) blocks = kMaxBlocks;
  const int64_t spans = (hidden + kSpan - 1) / kSpan, turns = (rows + kTeams - 1) / kTeams;
  const int64_t wanted = most_parts(rows, hidden, blocks);
  const int64_t turns_of_part = (turns + wanted - 1) / wanted;
  const int64_t parts = (turns + turns_of_part - 1) / turns_of_part;  // all take as long
  const int cols = kGates * (int)hidden;
  float* partial = static_cast<float*>(workspace);

  const uintptr_t places = (uintptr_t)gates | (uintptr_t)c_old | (uintptr_t)dh |
                           (uintptr_t)dc_next | (uintptr_t)dgates | (uintptr_t)dc_old;
  const bool aligned = hidden % kOfLane == 0 && places % 16 == 0;
  const auto kernel = aligned ? gradients<T, kOfLane> : gradients<T, 1>;
  kernel<<<dim3((unsigned)spans, (unsigned)parts), dim3(kThreads), 0, stream>>>(
      gates, c_old, dh, dc_next, dgates, dc_old, partial, rows, turns_of_part * kTeams,
      (int)hidden);
  finish<<<dim3((unsigned)((cols + kWave - 1) / kWave)), dim3(kWave * kWave), 0, stream>>>(
      partial, dbias, (int)parts, cols);
  return hipGetLastError();
}

size_t workspace_bytes(int64_t rows, int64_t hidden) {
  return most_parts(rows, hidden, kMaxBlocks) * kGates * hidden * sizeof(float);
}

}  // namespace

extern "C" size_t lstm_cell_backward_f32_workspace(int64_t rows, int64_t hidden) {
  return workspace_bytes(rows, hidden);
}

extern "C" size_t lstm_cell_backward_f16_workspace(int64_t rows, int64_t hidden) {
  return workspace_bytes(rows, hidden);
}

extern "C" size_t lstm_cell_backward_bf16_workspace(int64_t rows, int64_t hidden) {
  return workspace_bytes(rows, hidden);
}

extern "C" hipError_t lstm_cell_backward_f32(const float* gates, const float* c_old,
                                             const float* dh, const float* dc_next, float* dgates,
                                             float* dc_old, float* dbias, int64_t rows,
                                             int64_t hidden, void* workspace, hipStream_t stream) {
  return lstm_cell_backward(gates, c_old, dh, dc_next, dgates, dc_old, dbias, rows, hidden,
                            workspace, stream);
}

extern "C" hipError_t lstm_cell_backward_f16(const __half* gates, const float* c_old,
                                             const __half* dh, const float* dc_next, __half* dgates,
                                             float* dc_old, float* dbias, int64_t rows,
                                             int64_t hidden, void* workspace, hipStream_t stream) {
  return lstm_cell_backward(gates, c_old, dh, dc_next, dgates, dc_old, dbias, rows, hidden,
                            workspace, stream);
}

extern "C" hipError_t lstm_cell_backward_bf16(const __hip_bfloat16* gates, const float* c_old,
                                              const __hip_bfloat16* dh, const float* dc_next,
                                              __hip_bfloat16* dgates, float* dc_old, float* dbias,
                                              int64_t rows, int64_t hidden, void* workspace,
                                              hipStream_t stream) {
  return lstm_cell_backward(gates, c_old, dh, dc_next, dgates, dc_old, dbias, rows, hidden,
                            workspace, stream);
}
