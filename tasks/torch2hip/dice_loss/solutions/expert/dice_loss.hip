// Dice and cross-entropy in one pass over the logits. A thread has the logits of all classes of
// several pixels in registers, requested before one is looked at, and adds up what its pixels give
// to each class; a block adds up its threads, and a second kernel the blocks, in float64 and in an
// order that is always the same. A thread adds up a few hundred pixels at most.
//
// Instructions bound it, so a pixel costs a class few: an exponential, and the sums of it and of p;
// a class that is not there has a logit of -infinity. What a pixel gives to its own class alone
// goes to shared memory, where each thread has a column; its logit is read again, from the cache.
// The pixels of a step share a logarithm, as the sum of logarithms is that of the product. Of more
// than 14 classes a block has 14, and reads the others from the cache for the sum of exponentials.
//
// Where planes are not aligned, a pack is one element. Shuffles stay within 32 lanes: one source
// for waves of 32 and of 64.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWave = 32, kWaves = kThreads / kWave;  // lanes that reduce by shuffles
constexpr int kMost = 14;                             // classes of a block
constexpr int kSums = 3;                              // of a class: of p, of p * t and of t
constexpr int64_t kMaxBlocks = 1280;
constexpr int64_t kLongest = 512 * kThreads;  // pixels of a block

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

// Results too small for the format of normal numbers may be 0: not to ask saves two instructions.
__device__ float fast_exp(float v) {
#ifdef __CUDA_ARCH__
  v *= 1.44269504f;
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(v));
  return v;
#else
  return __expf(v);
#endif
}

// The sum of the values of a wave, for all its lanes.
template <class V> __device__ V wave_sum(V value) {
#pragma unroll
  for (int distance = kWave / 2; distance > 0; distance /= 2) {
    value += __shfl_xor(value, distance, kWave);
  }
  return value;
}

// So many blocks are to be on a multiprocessor at once.
template <class T> constexpr int resident(int64_t classes) {
  return (classes > 8 ? 3 : 4) - (sizeof(T) > 2);
}

template <class T, int kPack, int kClasses, bool kSome>
__global__ __launch_bounds__(kThreads, resident<T>(kClasses)) void add_up(
    const T* __restrict__ logits, const uint8_t* __restrict__ target, float* __restrict__ partial,
    int classes, int pixels) {
  constexpr int kItems = kPack > 1 ? 1 : kClasses > 4 ? 2 : 4, kStep = kThreads * kItems * kPack;
  __shared__ float sums[kSums * kClasses + 1][kThreads];
  const int first = kSome ? (int)blockIdx.z * kClasses : 0;
  const int64_t image = blockIdx.y;
  logits += image * classes * pixels;
  target += image * pixels;
  const auto known = [&](int c) { return first + c < classes; };

  const int thread = threadIdx.x;
  float all[kClasses] = {}, loss = 0.0f;
#pragma unroll
  for (int c = 0; c < kClasses; ++c) {
    sums[kSums * c + 1][thread] = sums[kSums * c + 2][thread] = 0.0f;
  }
  for (int start = (int)blockIdx.x * kStep; start < pixels; start += (int)gridDim.x * kStep) {
    Pack<T, kPack> packs[kClasses][kItems];
    Pack<uint8_t, kPack> targets[kItems];
    const auto place = [&](int item) {
      return start + (item * kThreads + thread) * kPack;
    };
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (place(i) >= pixels) continue;
      targets[i] = read<uint8_t, kPack>(target + place(i));
#pragma unroll
      for (int c = 0; c < kClasses; ++c) {
        if (known(c)) {
          packs[c][i] = read<T, kPack>(logits + (int64_t)(first + c) * pixels + place(i));
        } else {
#pragma unroll
          for (int j = 0; j < kPack; ++j) packs[c][i].v[j] = from_float<T>(-INFINITY);
        }
      }
    }
    float product = 1.0f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (place(i) >= pixels) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const int target_class = targets[i].v[j], kind = target_class - first;
        const T* pixel = logits + place(i) + j;
        const float own = to_float(pixel[(int64_t)target_class * pixels]);
        float most = -INFINITY, sum = 0.0f, share[kClasses];
        if constexpr (kSome) {
          for (int c = 0; c < classes; ++c) {
            most = fmaxf(most, to_float(pixel[(int64_t)c * pixels]));
          }
          for (int c = 0; c < classes; ++c) {
            sum += fast_exp(to_float(pixel[(int64_t)c * pixels]) - most);
          }
        } else {
#pragma unroll
          for (int c = 0; c < kClasses; ++c) most = fmaxf(most, to_float(packs[c][i].v[j]));
        }
#pragma unroll
        for (int c = 0; c < kClasses; ++c) {
          share[c] = fast_exp(to_float(packs[c][i].v[j]) - most);
          if constexpr (!kSome) sum += share[c];
        }
        product *= sum;
        loss += most - own;
        const float inverse = __fdividef(1.0f, sum);
#pragma unroll
        for (int c = 0; c < kClasses; ++c) all[c] += share[c] * inverse;
        if (!kSome || (kind >= 0 && kind < kClasses)) {
          sums[kSums * kind + 1][thread] += fast_exp(own - most) * inverse;
          sums[kSums * kind + 2][thread] += 1.0f;
        }
      }
    }
    loss += __logf(product);
  }

#pragma unroll
  for (int c = 0; c < kClasses; ++c) sums[kSums * c][thread] = all[c];
  sums[kSums * kClasses][thread] = loss;
  __syncthreads();
  // An image has the sums of all its classes, and its loss behind them; each is a row of parts.
  constexpr int kOfClasses = kSums * kClasses;
#pragma unroll 1
  for (int own = thread / kWave; own <= kOfClasses; own += kWaves) {
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < kWaves; ++w) sum += sums[own][w * kWave + thread % kWave];
    sum = wave_sum(sum);
    const int64_t row = own < kOfClasses ? kSums * first + own : kSums * classes;
    const bool wanted = own < kOfClasses ? known(own / kSums) : blockIdx.z == 0;
    if (wanted && thread % kWave == 0) {
      partial[(image * (kSums * classes + 1) + row) * gridDim.x + blockIdx.x] = sum;
    }
  }
}

// A block has a class of an image, and each of its waves one of the sums; the block behind the last
// class has the image's entropy.
__global__ __launch_bounds__(kSums * kWave) void finish(const float* __restrict__ partial,
                                                        float* __restrict__ dice,
                                                        float* __restrict__ entropy, int classes,
                                                        int pixels, int parts) {
  __shared__ double sums[kSums];
  const int64_t image = blockIdx.y;
  const int c = blockIdx.x, which = c < classes ? threadIdx.x / kWave : 0;
  const float* row = partial + (image * (kSums * classes + 1) + kSums * c + which) * parts;
  double sum = 0.0;
#pragma unroll 8
  for (int i = threadIdx.x % kWave; i < parts; i += kWave) sum += row[i];
  sum = wave_sum(sum);
  if (threadIdx.x % kWave == 0) sums[threadIdx.x / kWave] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  if (c == classes) {
    entropy[image] = (float)(sums[0] / pixels);
  } else {
    dice[image * classes + c] = (float)((2.0 * sums[1] + 1.0) / (sums[0] + sums[2] + 1.0));
  }
}

// Into how many parts an image is cut, for so many blocks: none is longer than kLongest.
int64_t parts_of(int64_t images, int64_t pixels, int64_t blocks) {
  const int64_t least = (pixels + kLongest - 1) / kLongest, steps = (pixels + 511) / 512;
  const int64_t wanted = (blocks + images - 1) / images;
  const int64_t parts = wanted < steps ? wanted : steps;
  return parts > least ? parts : least;
}

template <class T, int kPack>
void by_classes(const T* logits, const uint8_t* target, float* partial, int64_t images, int classes,
                int pixels, int parts, hipStream_t stream) {
  // Few classes leave registers for packs of 16 bytes, many for half of that.
  constexpr int kHalf = kPack > 4 ? 4 : kPack;
  const auto start = [&](auto kernel, int of_block) {
    const dim3 grid((unsigned)parts, (unsigned)images,
                    (unsigned)((classes + of_block - 1) / of_block));
    kernel<<<grid, dim3(kThreads), 0, stream>>>(logits, target, partial, classes, pixels);
  };
  if (classes <= 2) return start(add_up<T, kPack, 2, false>, 2);
  if (classes <= 4) return start(add_up<T, kPack, 4, false>, 4);
  if (classes <= 8) return start(add_up<T, kHalf, 8, false>, 8);
  if (classes <= kMost) return start(add_up<T, kHalf, kMost, false>, kMost);
  start(add_up<T, kHalf, kMost, true>, kMost);
}

template <class T>
hipError_t dice_loss(const T* logits, const uint8_t* target, float* dice, float* entropy,
                     int64_t images, int64_t classes, int64_t pixels, void* workspace,
                     hipStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  int device = 0, processors = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, device);
  const int64_t blocks = resident<T>(classes) * (int64_t)processors;
  const int parts = (int)parts_of(images, pixels, blocks < kMaxBlocks ? blocks : kMaxBlocks);
  float* partial = static_cast<float*>(workspace);
  const uintptr_t places = (uintptr_t)logits | (uintptr_t)target;
  const bool aligned = pixels % kPack == 0 && places % 16 == 0;
  const auto start = aligned ? by_classes<T, kPack> : by_classes<T, 1>;
  start(logits, target, partial, images, (int)classes, (int)pixels, parts, stream);
  finish<<<dim3((unsigned)classes + 1, (unsigned)images), dim3(kSums * kWave), 0, stream>>>(
      partial, dice, entropy, (int)classes, (int)pixels, parts);
  return hipGetLastError();
}

size_t workspace_bytes(int64_t images, int64_t classes, int64_t pixels) {
  return images * (kSums * classes + 1) * parts_of(images, pixels, kMaxBlocks) * sizeof(float);
}

}  // namespace

extern "C" size_t dice_loss_f32_workspace(int64_t images, int64_t classes, int64_t pixels) {
  return workspace_bytes(images, classes, pixels);
}

extern "C" size_t dice_loss_f16_workspace(int64_t images, int64_t classes, int64_t pixels) {
  return workspace_bytes(images, classes, pixels);
}

extern "C" size_t dice_loss_bf16_workspace(int64_t images, int64_t classes, int64_t pixels) {
  return workspace_bytes(images, classes, pixels);
}

extern "C" hipError_t dice_loss_f32(const float* logits, const uint8_t* target, float* dice,
                                    float* entropy, int64_t images, int64_t classes, int64_t pixels,
                                    void* workspace, hipStream_t stream) {
  return dice_loss(logits, target, dice, entropy, images, classes, pixels, workspace, stream);
}

extern "C" hipError_t dice_loss_f16(const __half* logits, const uint8_t* target, float* dice,
                                    float* entropy, int64_t images, int64_t classes, int64_t pixels,
                                    void* workspace, hipStream_t stream) {
  return dice_loss(logits, target, dice, entropy, images, classes, pixels, workspace, stream);
}

extern "C" hipError_t dice_loss_bf16(const __hip_bfloat16* logits, const uint8_t* target,
                                     float* dice, float* entropy, int64_t images, int64_t classes,
                                     int64_t pixels, void* workspace, hipStream_t stream) {
  return dice_loss(logits, target, dice, entropy, images, classes, pixels, workspace, stream);
}
