// Kernels that fail at run time, each in its own way.
#include <hip/hip_runtime.h>

__global__ void trap_in_thread(int which) {
  if (threadIdx.x == which) __trap();
  __syncthreads();
}

__device__ int __attribute__((noinline)) recurse(volatile int* data, int depth) {
  volatile char frame[1024];
  frame[depth % 1024] = static_cast<char>(depth);
  return depth == 0 ? *data : recurse(data, depth - 1) + frame[depth % 1024];
}

__global__ void overflow(int* data, int depth) {
  __syncthreads();
  data[threadIdx.x] = recurse(data, depth);
}

__global__ void large_frame(int* data, int index) {
  volatile int frame[100000];
  frame[index] = data[0];
  data[threadIdx.x] = frame[index];
}

extern "C" {

hipError_t launch_trap(int threads, int which) {
  trap_in_thread<<<8, threads>>>(which);
  return hipGetLastError();
}

hipError_t launch_overflow(int* data, int threads, int depth) {
  overflow<<<1, threads>>>(data, depth);
  return hipGetLastError();
}

hipError_t launch_large_frame(int* data) {
  large_frame<<<1, 1>>>(data, 0);
  return hipGetLastError();
}

}
