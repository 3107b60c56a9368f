// Squeeze and excitation of the channels of images. Where a cluster of blocks has room for an image
// in its shared memory, one kernel reads all once. Else there are three:
//
// Means of the planes, one of these for each image and channel; the hidden layer; and the gates
// with the product. The last goes from the end of the tensor to its beginning: the end is what the
// first read last, and is still in the cache.
//
// A plane is shared by 8, 32 or 256 threads, by its size. Its elements up to a 16-byte boundary and
// behind the last one are taken one by one, the others as packs of 16 bytes, several of them
// requested before one is used. If x and y are not aligned alike, all are taken one by one.
// Shuffles stay within 32 lanes: one source for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kWave = 32;     // lanes that reduce by shuffles, also in waves of 64
constexpr int kBlock = 256;   // threads
constexpr int kAhead = 4;     // packs that a thread requests at once

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
template <> struct Word<1> { using Type = uint8_t; };
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint64_t; };
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

// The sum of the values of the kLanes lanes of a plane. All threads of the block call this.
template <int kLanes> __device__ float lane_sum(float value) {
#pragma unroll
  for (int distance = (kLanes < kWave ? kLanes : kWave) / 2; distance > 0; distance /= 2) {
    value += __shfl_xor(value, distance, kWave);
  }
  if constexpr (kLanes > kWave) {
    static_assert(kLanes == kBlock, "a plane has a part of a wave, or a block");
    __shared__ float scratch[kBlock / kWave];
    if (threadIdx.x % kWave == 0) scratch[threadIdx.x / kWave] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int w = 1; w < kBlock / kWave; ++w) value += scratch[w];
  }
  return value;
}

// How a lane goes over a plane of `size` elements: packs, and single ones around them.
template <class T, int kPack> struct Walk {
  int head, packs, single;

  __device__ Walk(const T* plane, int size) {
    const int beyond = (int)((uintptr_t)plane % (kPack * sizeof(T)) / sizeof(T));
    const int ahead = beyond ? kPack - beyond : 0;
    head = ahead < size ? ahead : size;
    packs = (size - head) / kPack;
    single = size - packs * kPack;
  }
  __device__ int pack(int i) const { return head + i * kPack; }
  __device__ int one(int i) const { return i < head ? i : packs * kPack + i; }

  // Calls some(place, pack) and one(place, element) for all of a lane's.
  template <int kLanes, class Some, class One>
  __device__ void each(const T* plane, int lane, Some some, One single_one) const {
    for (int i = lane; i < packs; i += kLanes * kAhead) {
      Pack<T, kPack> of[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (i + u * kLanes < packs) of[u] = read<T, kPack>(plane + pack(i + u * kLanes));
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (i + u * kLanes < packs) some(pack(i + u * kLanes), of[u]);
      }
    }
    for (int i = lane; i < single; i += kLanes) single_one(one(i), plane[one(i)]);
  }
};

template <class T, int kPack, int kLanes>
__global__ __launch_bounds__(kBlock) void average(const T* __restrict__ x,
                                                  float* __restrict__ means, int64_t planes,
                                                  int size) {
  const int64_t plane = (int64_t)blockIdx.x * (kBlock / kLanes) + threadIdx.x / kLanes;
  const int lane = threadIdx.x % kLanes;
  const T* from = x + plane * size;
  float sum = 0.0f;
  if (plane < planes) {
    const Walk<T, kPack> walk(from, size);
    walk.template each<kLanes>(
        from, lane,
        [&](int, const Pack<T, kPack>& pack) {
#pragma unroll
          for (int j = 0; j < kPack; ++j) sum += to_float(pack.v[j]);
        },
        [&](int, T element) { sum += to_float(element); });
  }
  sum = lane_sum<kLanes>(sum);
  if (plane < planes && lane == 0) means[plane] = sum / (float)size;
}

// 32 lanes have an element of the hidden layer of an image.
template <class T>
__global__ __launch_bounds__(kBlock) void hide(const float* __restrict__ means,
                                               const T* __restrict__ w1, const T* __restrict__ b1,
                                               float* __restrict__ hidden, int64_t images,
                                               int channels, int width) {
  const int64_t place = (int64_t)blockIdx.x * (kBlock / kWave) + threadIdx.x / kWave;
  const int64_t image = place / width;
  const int unit = (int)(place % width), lane = threadIdx.x % kWave;
  float sum = 0.0f;
  if (image < images) {
#pragma unroll 4
    for (int c = lane; c < channels; c += kWave) {
      sum += to_float(w1[(int64_t)unit * channels + c]) * means[image * channels + c];
    }
  }
  sum = lane_sum<kWave>(sum);
  if (image >= images || lane != 0) return;
  const float a = sum + to_float(b1[unit]);
  hidden[place] = a / (1.0f + __expf(-a));
}

template <class T, int kPack, int kLanes>
__global__ __launch_bounds__(kBlock) void excite(const T* __restrict__ x,
                                                 const float* __restrict__ hidden,
                                                 const T* __restrict__ w2,
                                                 const T* __restrict__ b2, T* __restrict__ y,
                                                 int64_t planes, int channels, int size,
                                                 int width) {
  const int64_t from_end = (int64_t)blockIdx.x * (kBlock / kLanes) + threadIdx.x / kLanes;
  const int64_t plane = planes - 1 - from_end;
  const int lane = threadIdx.x % kLanes;
  const int channel = plane < 0 ? 0 : (int)((uint32_t)plane % (uint32_t)channels);
  const int64_t image = plane < 0 ? 0 : (uint32_t)plane / (uint32_t)channels;
  float sum = 0.0f;
  for (int j = lane; j < width; j += kLanes) {
    sum += to_float(w2[(int64_t)channel * width + j]) * hidden[image * width + j];
  }
  sum = lane_sum<kLanes>(sum);
  if (plane < 0) return;
  const float gate = 1.0f / (1.0f + __expf(-(sum + to_float(b2[channel]))));
  const T* from = x + plane * size;
  T* to = y + plane * size;
  const Walk<T, kPack> walk(from, size);
  walk.template each<kLanes>(
      from, lane,
      [&](int place, Pack<T, kPack> pack) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) pack.v[j] = from_float<T>(to_float(pack.v[j]) * gate);
        write<T, kPack>(to + place, pack);
      },
      [&](int place, T element) { to[place] = from_float<T>(to_float(element) * gate); });
}

template <class T> struct Tensors {
  const T *x, *w1, *b1, *w2, *b2;
  T* y;
  int64_t images, channels, size, hidden;
  float* workspace;  // means, and the hidden layer
  hipStream_t stream;
};

unsigned blocks_of(int64_t all, int64_t in_block) {
  return (unsigned)((all + in_block - 1) / in_block);
}

template <class T, int kPack, int kLanes> void launch(const Tensors<T>& of) {
  const int64_t planes = of.images * of.channels;
  const dim3 grid(blocks_of(planes, kBlock / kLanes)), block(kBlock);
  const dim3 small(blocks_of(of.images * of.hidden, kBlock / kWave));
  float *means = of.workspace, *hidden = means + planes;
  const int channels = (int)of.channels, size = (int)of.size, width = (int)of.hidden;
  average<T, kPack, kLanes><<<grid, block, 0, of.stream>>>(of.x, means, planes, size);
  hide<T><<<small, block, 0, of.stream>>>(means, of.w1, of.b1, hidden, of.images, channels, width);
  excite<T, kPack, kLanes><<<grid, block, 0, of.stream>>>(of.x, hidden, of.w2, of.b2, of.y, planes,
                                                          channels, size, width);
}

template <class T, int kPack> void by_size(const Tensors<T>& of) {
  if (of.size <= 8 * 4 * kPack) {
    launch<T, kPack, 8>(of);
  } else if (of.size <= 1024 * kPack) {
    launch<T, kPack, kWave>(of);
  } else {
    launch<T, kPack, kBlock>(of);
  }
}

// From Hopper on, but for GPUs whose blocks have less shared memory.
#if defined(__HIP_PLATFORM_NVIDIA__) && __CUDA_ARCH_LIST__ >= 900 && __CUDA_ARCH_LIST__ < 1200
constexpr int kParts = 8;             // blocks of a cluster
constexpr int64_t kLeastImages = 12;  // that keep the device busy with a cluster each
constexpr size_t kRoom = 220 * 1024;  // bytes of shared memory for a block's planes

__device__ void arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// A cluster has an image, which it reads once: each block keeps its planes in shared memory. A wave
// requests its planes, adds them up and writes them; others matter for the hidden layer only.
template <class T, int kPack, int kThreads>
__global__ __launch_bounds__(kThreads) __cluster_dims__(kParts) void excite_image(
    const T* __restrict__ x, const T* __restrict__ w1, const T* __restrict__ b1,
    const T* __restrict__ w2, const T* __restrict__ b2, T* __restrict__ y, int channels, int size,
    int width) {
  extern __shared__ uint4 held[];
  __shared__ float means[4096 / kParts], partial[512], hidden[512];
  constexpr int kWaves = kThreads / kWave;
  const int wave = threadIdx.x / kWave, lane = threadIdx.x % kWave;
  const int most = (channels + kParts - 1) / kParts, first = blockIdx.x * most;
  const int count = channels - first < most ? channels - first : most;  // may be less than 1
  const int packs = size / kPack;
  const int64_t start = ((int64_t)blockIdx.y * channels + first) * size;
  for (int p = wave; p < count; p += kWaves) {
    const T* from = x + start + (int64_t)p * size;
    for (int i = lane; i < packs; i += kWave) {
      const unsigned to = (unsigned)__cvta_generic_to_shared(held + p * packs + i);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from + i * kPack));
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  const auto planes = reinterpret_cast<const T*>(held);
  for (int p = wave; p < count; p += kWaves) {
    float sums[2] = {};
#pragma unroll 4
    for (int i = lane; i < packs; i += kWave) {
      const auto pack = read<T, kPack>(planes + (p * packs + i) * kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) sums[j % 2] += to_float(pack.v[j]);
    }
    const float sum = lane_sum<kWave>(sums[0] + sums[1]);
    if (lane == 0) means[p] = sum / (float)size;
  }
  __syncthreads();
  for (int j = wave; j < width; j += kWaves) {
    float sum = 0.0f;
    for (int c = lane; c < count; c += kWave) {
      sum += to_float(w1[(int64_t)j * channels + first + c]) * means[c];
    }
    sum = lane_sum<kWave>(sum);
    if (lane == 0) partial[j] = sum;
  }
  arrive();
  wait();
  for (int j = threadIdx.x; j < width; j += kThreads) {
    float a = to_float(b1[j]);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const float* other;
      asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(partial + j), "r"(part));
      a += *other;
    }
    hidden[j] = a / (1.0f + __expf(-a));
  }
  __syncthreads();
  arrive();
  for (int p = wave; p < count; p += kWaves) {
    float sum = 0.0f;
    for (int j = lane; j < width; j += kWave) {
      sum += to_float(w2[(int64_t)(first + p) * width + j]) * hidden[j];
    }
    sum = lane_sum<kWave>(sum);
    const float gate = 1.0f / (1.0f + __expf(-(sum + to_float(b2[first + p]))));
    T* to = y + start + (int64_t)p * size;
#pragma unroll 4
    for (int i = lane; i < packs; i += kWave) {
      auto pack = read<T, kPack>(planes + (p * packs + i) * kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) pack.v[j] = from_float<T>(to_float(pack.v[j]) * gate);
      write<T, kPack>(to + i * kPack, pack);
    }
  }
  wait();  // no block ends before all have read its sums
}

template <class T> bool has_room(int64_t images, int64_t channels, int64_t size) {
  const size_t planes = (size_t)((channels + kParts - 1) / kParts);
  return images >= kLeastImages && size * sizeof(T) >= 16 * kWave && size * sizeof(T) % 16 == 0 &&
         planes * size * sizeof(T) <= kRoom;
}

template <class T, int kPack, int kThreads> hipError_t launch_images(const Tensors<T>& of) {
  const size_t bytes = (of.channels + kParts - 1) / kParts * of.size * sizeof(T);
  const auto kernel = excite_image<T, kPack, kThreads>;
  const hipError_t error = hipFuncSetAttribute(
      (const void*)kernel, hipFuncAttributeMaxDynamicSharedMemorySize, (int)kRoom);
  if (error != hipSuccess) return error;
  kernel<<<dim3(kParts, (unsigned)of.images), dim3(kThreads), bytes, of.stream>>>(
      of.x, of.w1, of.b1, of.w2, of.b2, of.y, (int)of.channels, (int)of.size, (int)of.hidden);
  return hipGetLastError();
}

template <class T> hipError_t by_images(const Tensors<T>& of) {
  constexpr int kPack = 16 / sizeof(T);
  return of.channels > kParts * 16 ? launch_images<T, kPack, 1024>(of)
                                   : launch_images<T, kPack, 512>(of);
}
#else
template <class T> bool has_room(int64_t, int64_t, int64_t) { return false; }
template <class T> hipError_t by_images(const Tensors<T>&) { return hipErrorNotSupported; }
#endif

size_t workspace_bytes(int64_t images, int64_t channels, int64_t hidden) {
  return images * (channels + hidden) * sizeof(float);
}

template <class T>
hipError_t squeeze_excite(const T* x, const T* w1, const T* b1, const T* w2, const T* b2, T* y,
                          int64_t images, int64_t channels, int64_t height, int64_t width,
                          int64_t hidden, void* workspace, hipStream_t stream) {
  const Tensors<T> of = {x,      w1,       b1,     w2,     b2, y, images, channels, height * width,
                         hidden, (float*)workspace, stream};
  if (((uintptr_t)x | (uintptr_t)y) % 16 == 0 && has_room<T>(images, channels, height * width)) {
    return by_images<T>(of);
  }
  if (((uintptr_t)x - (uintptr_t)y) % 16 == 0) {
    by_size<T, 16 / sizeof(T)>(of);
  } else {
    by_size<T, 1>(of);
  }
  return hipGetLastError();
}

}  // namespace

extern "C" size_t squeeze_excite_f32_workspace(int64_t images, int64_t channels, int64_t height,
                                               int64_t width, int64_t hidden) {
  return workspace_bytes(images, channels, hidden);
}

extern "C" hipError_t squeeze_excite_f32(const float* x, const float* w1, const float* b1,
                                         const float* w2, const float* b2, float* y, int64_t images,
                                         int64_t channels, int64_t height, int64_t width,
                                         int64_t hidden, void* workspace, hipStream_t stream) {
  return squeeze_excite(x, w1, b1, w2, b2, y, images, channels, height, width, hidden, workspace,
                        stream);
}

extern "C" size_t squeeze_excite_f16_workspace(int64_t images, int64_t channels, int64_t height,
                                               int64_t width, int64_t hidden) {
  return workspace_bytes(images, channels, hidden);
}

extern "C" hipError_t squeeze_excite_f16(const __half* x, const __half* w1, const __half* b1,
                                         const __half* w2, const __half* b2, __half* y,
                                         int64_t images, int64_t channels, int64_t height,
                                         int64_t width, int64_t hidden, void* workspace,
                                         hipStream_t stream) {
  return squeeze_excite(x, w1, b1, w2, b2, y, images, channels, height, width, hidden, workspace,
                        stream);
}

extern "C" size_t squeeze_excite_bf16_workspace(int64_t images, int64_t channels, int64_t height,
                                                int64_t width, int64_t hidden) {
  return workspace_bytes(images, channels, hidden);
}

extern "C" hipError_t squeeze_excite_bf16(const __hip_bfloat16* x, const __hip_bfloat16* w1,
                                          const __hip_bfloat16* b1, const __hip_bfloat16* w2,
                                          const __hip_bfloat16* b2, __hip_bfloat16* y,
                                          int64_t images, int64_t channels, int64_t height,
                                          int64_t width, int64_t hidden, void* workspace,
                                          hipStream_t stream) {
  return squeeze_excite(x, w1, b1, w2, b2, y, images, channels, height, width, hidden, workspace,
                        stream);
}
