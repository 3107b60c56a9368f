// The CTC loss: one kernel with a block for each frame sums up its exponentials, a second one with
// a block for each utterance walks over the frames, with the states spread over threads.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdint.h>

namespace {

__device__ float to_float(float v) { return v; }
__device__ float to_float(__half v) { return __half2float(v); }
__device__ float to_float(__hip_bfloat16 v) { return __bfloat162float(v); }

constexpr int kThreads = 128;
constexpr int kMostStates = 2 * 512 + 1;

template <class T>
__global__ void normalisers(const T* logits, float* lse, int64_t classes) {
  __shared__ float scratch[kThreads];
  const T* row = logits + blockIdx.x * classes;
  float largest = -INFINITY;
  for (int64_t i = threadIdx.x; i < classes; i += kThreads) {
    largest = fmaxf(largest, to_float(row[i]));
  }
  scratch[threadIdx.x] = largest;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
    __syncthreads();
  }
  largest = scratch[0];
  __syncthreads();
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < classes; i += kThreads) {
    sum += expf(to_float(row[i]) - largest);
  }
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    lse[blockIdx.x] = largest + logf(scratch[0]);
  }
}

// The logarithm of the sum of three exponentials, any of which may be 0.
__device__ float log_sum(float a, float b, float c) {
  const float largest = fmaxf(a, fmaxf(b, c));
  if (largest == -INFINITY) {
    return largest;
  }
  return largest + logf(expf(a - largest) + expf(b - largest) + expf(c - largest));
}

// State 2 * i + 1 is label i, the even states are blanks around them.
template <class T>
__global__ void walk(const T* logits, const int32_t* label, const int32_t* frames,
                     const int32_t* labels, const float* lse, float* loss, int64_t batch,
                     int64_t classes, int64_t length) {
  __shared__ float alpha[2][kMostStates];
  const int64_t own = blockIdx.x;
  const int32_t* spelled = label + own * length;
  const int states = 2 * labels[own] + 1;
  for (int64_t t = 0; t < frames[own]; ++t) {
    const float* before = alpha[(t + 1) % 2];
    float* now = alpha[t % 2];
    const T* frame = logits + (t * batch + own) * classes;
    for (int s = threadIdx.x; s < states; s += kThreads) {
      const int32_t kind = s % 2 ? spelled[s / 2] : 0;
      float reached = s < 2 ? 0.0f : -INFINITY;
      if (t > 0) {
        const bool skips = s > 2 && s % 2 && kind != spelled[s / 2 - 1];
        reached = log_sum(before[s], s > 0 ? before[s - 1] : -INFINITY,
                          skips ? before[s - 2] : -INFINITY);
      }
      now[s] = reached + (to_float(frame[kind]) - lse[t * batch + own]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    const float* last = alpha[(frames[own] + 1) % 2];
    loss[own] = -log_sum(last[states - 1], last[states - 2], -INFINITY);
  }
}

size_t ctc_loss_workspace(int64_t time, int64_t batch, int64_t classes, int64_t length) {
  return time * batch * sizeof(float);
}

template <class T>
hipError_t ctc_loss(const T* logits, const int32_t* label, const int32_t* frames,
                    const int32_t* labels, float* loss, int64_t time, int64_t batch,
                    int64_t classes, int64_t length, void* workspace, hipStream_t stream) {
  float* lse = (float*)workspace;
  const dim3 threads(kThreads);
  normalisers<T><<<dim3((unsigned)(time * batch)), threads, 0, stream>>>(logits, lse, classes);
  walk<T><<<dim3((unsigned)batch), threads, 0, stream>>>(logits, label, frames, labels, lse, loss,
                                                         batch, classes, length);
  return hipGetLastError();
}

}  // namespace

extern "C" hipError_t ctc_loss_f32(const float* logits, const int32_t* label, const int32_t* frames,
                                   const int32_t* labels, float* loss, int64_t time, int64_t batch,
                                   int64_t classes, int64_t length, void* workspace,
                                   hipStream_t stream) {
  return ctc_loss(logits, label, frames, labels, loss, time, batch, classes, length, workspace,
                  stream);
}

extern "C" size_t ctc_loss_f32_workspace(int64_t time, int64_t batch, int64_t classes,
                                         int64_t length) {
  return ctc_loss_workspace(time, batch, classes, length);
}

extern "C" hipError_t ctc_loss_f16(const __half* logits, const int32_t* label,
                                   const int32_t* frames, const int32_t* labels, float* loss,
                                   int64_t time, int64_t batch, int64_t classes, int64_t length,
                                   void* workspace, hipStream_t stream) {
  return ctc_loss(logits, label, frames, labels, loss, time, batch, classes, length, workspace,
                  stream);
}

extern "C" size_t ctc_loss_f16_workspace(int64_t time, int64_t batch, int64_t classes,
                                         int64_t length) {
  return ctc_loss_workspace(time, batch, classes, length);
}

extern "C" hipError_t ctc_loss_bf16(const __hip_bfloat16* logits, const int32_t* label,
                                    const int32_t* frames, const int32_t* labels, float* loss,
                                    int64_t time, int64_t batch, int64_t classes, int64_t length,
                                    void* workspace, hipStream_t stream) {
  return ctc_loss(logits, label, frames, labels, loss, time, batch, classes, length, workspace,
                  stream);
}

extern "C" size_t ctc_loss_bf16_workspace(int64_t time, int64_t batch, int64_t classes,
                                          int64_t length) {
  return ctc_loss_workspace(time, batch, classes, length);
}
