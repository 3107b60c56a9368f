// Non-maximum suppression in two kernels: which boxes each box overlaps, as bits, and a walk over
// the boxes of an image, the best first.
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

constexpr int kThreads = 64;

__device__ float area(const float* box) {
  return fmaxf(box[2] - box[0], 0.0f) * fmaxf(box[3] - box[1], 0.0f);
}

__device__ bool overlaps(const float* a, const float* b, float limit) {
  const float wide = fmaxf(fminf(a[2], b[2]) - fmaxf(a[0], b[0]), 0.0f);
  const float high = fmaxf(fminf(a[3], b[3]) - fmaxf(a[1], b[1]), 0.0f);
  const float both = wide * high;
  return both > limit * (area(a) + area(b) - both);
}

// One thread a box and 64 others: bit i of a word is box 64 * word + i.
__global__ void compare(const float* box, uint64_t* bits, float limit, int64_t boxes,
                        int64_t words) {
  const int64_t own = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  const int64_t word = blockIdx.y;
  const float* all = box + (int64_t)blockIdx.z * boxes * 4;
  if (own >= boxes) {
    return;
  }
  uint64_t found = 0;
  for (int64_t i = 0; i < 64; ++i) {
    const int64_t other = word * 64 + i;
    if (other > own && other < boxes && overlaps(all + own * 4, all + other * 4, limit)) {
      found |= (uint64_t)1 << i;
    }
  }
  bits[((int64_t)blockIdx.z * boxes + own) * words + word] = found;
}

// One block an image, whose threads share the words of suppressed boxes.
__global__ void walk(const uint64_t* bits, uint64_t* gone, uint8_t* keep, int32_t* count,
                     int64_t boxes, int64_t words) {
  const int64_t image = blockIdx.x;
  uint64_t* suppressed = gone + image * words;
  for (int64_t word = threadIdx.x; word < words; word += kThreads) {
    suppressed[word] = 0;
  }
  __syncthreads();
  int32_t kept = 0;
  for (int64_t own = 0; own < boxes; ++own) {
    const bool stays = !(suppressed[own / 64] >> (own % 64) & 1);
    __syncthreads();
    if (stays) {
      const uint64_t* row = bits + (image * boxes + own) * words;
      for (int64_t word = threadIdx.x; word < words; word += kThreads) {
        suppressed[word] |= row[word];
      }
      ++kept;
    }
    if (threadIdx.x == 0) {
      keep[image * boxes + own] = stays ? 1 : 0;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    count[image] = kept;
  }
}

size_t nms_workspace(int64_t images, int64_t boxes) {
  return images * (boxes + 1) * ((boxes + 63) / 64) * sizeof(uint64_t);
}

hipError_t nms(const float* box, uint8_t* keep, int32_t* count, float limit, int64_t images,
               int64_t boxes, void* workspace, hipStream_t stream) {
  const int64_t words = (boxes + 63) / 64;
  uint64_t* bits = (uint64_t*)workspace;
  uint64_t* gone = bits + images * boxes * words;
  const dim3 grid((unsigned)((boxes + kThreads - 1) / kThreads), (unsigned)words, (unsigned)images);
  compare<<<grid, dim3(kThreads), 0, stream>>>(box, bits, limit, boxes, words);
  walk<<<dim3((unsigned)images), dim3(kThreads), 0, stream>>>(bits, gone, keep, count, boxes,
                                                              words);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t nms_f32(const float* box, uint8_t* keep, int32_t* count, float limit,
                              int64_t images, int64_t boxes, void* workspace, hipStream_t stream) {
  return nms(box, keep, count, limit, images, boxes, workspace, stream);
}

extern "C" size_t nms_f32_workspace(int64_t images, int64_t boxes) {
  return nms_workspace(images, boxes);
}
