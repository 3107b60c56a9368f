// The gradient of the weights of a 3 x 3 convolution: for each of the nine places, a product over
// all pixels by tiles of 16 x 16 channels, one element a thread. dbias has one thread a channel.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

constexpr int kTile = 16;
constexpr int kThreads = 64;

template <class T>
__global__ void weight_gradient(const T* x, const T* dy, float* dweight, int64_t images,
                                int64_t height, int64_t width, int64_t ins, int64_t outs) {
  __shared__ float of_x[kTile][kTile + 1];
  __shared__ float of_dy[kTile][kTile + 1];
  const int64_t in = (int64_t)blockIdx.x * kTile + threadIdx.x;
  const int64_t out = (int64_t)blockIdx.y * kTile + threadIdx.y;
  const int64_t loaded = (int64_t)blockIdx.y * kTile + threadIdx.x;
  const int64_t down = (int64_t)blockIdx.z / 3 - 1;
  const int64_t right = (int64_t)blockIdx.z % 3 - 1;
  const int64_t pixels = images * height * width;
  float sum = 0.0f;
  for (int64_t start = 0; start < pixels; start += kTile) {
    const int64_t pixel = start + threadIdx.y;
    const int64_t row = pixel / width % height + down;
    const int64_t col = pixel % width + right;
    const bool inside =
        pixel < pixels && row >= 0 && row < height && col >= 0 && col < width;
    const int64_t other = pixel + down * width + right;
    of_x[threadIdx.y][threadIdx.x] = inside && in < ins ? to_float(x[other * ins + in]) : 0.0f;
    of_dy[threadIdx.y][threadIdx.x] =
        pixel < pixels && loaded < outs ? to_float(dy[pixel * outs + loaded]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += of_dy[i][threadIdx.y] * of_x[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (in < ins && out < outs) {
    dweight[(out * 9 + blockIdx.z) * ins + in] = sum;
  }
}

template <class T>
__global__ void bias_gradient(const T* dy, float* dbias, int64_t pixels, int64_t outs) {
  const int64_t out = (int64_t)blockIdx.x * kThreads + threadIdx.x;
  if (out >= outs) {
    return;
  }
  float sum = 0.0f;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    sum += to_float(dy[pixel * outs + out]);
  }
  dbias[out] = sum;
}

template <class T>
hipError_t conv2d_weight_backward(const T* x, const T* dy, float* dweight, float* dbias,
                                  int64_t images, int64_t height, int64_t width, int64_t ins,
                                  int64_t outs, hipStream_t stream) {
  const dim3 blocks((unsigned)((ins + kTile - 1) / kTile), (unsigned)((outs + kTile - 1) / kTile),
                    9);
  weight_gradient<T><<<blocks, dim3(kTile, kTile), 0, stream>>>(x, dy, dweight, images, height,
                                                                width, ins, outs);
  const unsigned channels = (unsigned)((outs + kThreads - 1) / kThreads);
  bias_gradient<T><<<dim3(channels), dim3(kThreads), 0, stream>>>(dy, dbias,
                                                                  images * height * width, outs);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t conv2d_weight_backward_f32(const float* x, const float* dy, float* dweight,
                                                 float* dbias, int64_t images, int64_t height,
                                                 int64_t width, int64_t ins, int64_t outs,
                                                 hipStream_t stream) {
  return conv2d_weight_backward(x, dy, dweight, dbias, images, height, width, ins, outs, stream);
}

extern "C" hipError_t conv2d_weight_backward_f16(const __half* x, const __half* dy, float* dweight,
                                                 float* dbias, int64_t images, int64_t height,
                                                 int64_t width, int64_t ins, int64_t outs,
                                                 hipStream_t stream) {
  return conv2d_weight_backward(x, dy, dweight, dbias, images, height, width, ins, outs, stream);
}

extern "C" hipError_t conv2d_weight_backward_bf16(const __hip_bfloat16* x, const __hip_bfloat16* dy,
                                                  float* dweight, float* dbias, int64_t images,
                                                  int64_t height, int64_t width, int64_t ins,
                                                  int64_t outs, hipStream_t stream) {
  return conv2d_weight_backward(x, dy, dweight, dbias, images, height, width, ins, outs, stream);
}
