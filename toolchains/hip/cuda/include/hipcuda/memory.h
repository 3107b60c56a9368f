// Memory: CUDA's functions, and the few that only HIP has.
#pragma once

#include <hipcuda/errors.h>
#include <hipcuda/stream.h>

using hipMemcpyKind = cudaMemcpyKind;
using hipDeviceptr_t = void*;

#define hipMemcpyHostToHost cudaMemcpyHostToHost
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDefault cudaMemcpyDefault
#define hipHostMallocDefault cudaHostAllocDefault
#define hipHostMallocPortable cudaHostAllocPortable
#define hipHostMallocMapped cudaHostAllocMapped
#define hipMemAttachGlobal cudaMemAttachGlobal
#define hipMemAttachHost cudaMemAttachHost

#define hipMalloc cudaMalloc
#define hipMallocAsync cudaMallocAsync
#define hipMallocManaged cudaMallocManaged
#define hipMallocPitch cudaMallocPitch
#define hipHostMalloc cudaMallocHost
#define hipFree cudaFree
#define hipFreeAsync cudaFreeAsync
#define hipHostFree cudaFreeHost
#define hipHostGetDevicePointer cudaHostGetDevicePointer
#define hipMemcpy cudaMemcpy
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpy2D cudaMemcpy2D
#define hipMemcpy2DAsync cudaMemcpy2DAsync
#define hipMemcpyToSymbol cudaMemcpyToSymbol
#define hipMemcpyToSymbolAsync cudaMemcpyToSymbolAsync
#define hipMemcpyFromSymbol cudaMemcpyFromSymbol
#define hipMemcpyFromSymbolAsync cudaMemcpyFromSymbolAsync
#define hipGetSymbolAddress cudaGetSymbolAddress
#define hipGetSymbolSize cudaGetSymbolSize
#define hipMemset cudaMemset
#define hipMemsetAsync cudaMemsetAsync
#define hipMemset2D cudaMemset2D
#define hipMemset2DAsync cudaMemset2DAsync
#define hipMemGetInfo cudaMemGetInfo

HIPCUDA_HOST hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}
HIPCUDA_HOST hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void* from, size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
}
HIPCUDA_HOST hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
}
HIPCUDA_HOST hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                                           hipStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
HIPCUDA_HOST hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void* from, size_t bytes,
                                           hipStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
}
HIPCUDA_HOST hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes,
                                           hipStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
}

namespace hipcuda {

// CUDA's runtime sets bytes only. A template, so that it is compiled where it is used.
template <class T>
__global__ void fill(T* to, T value, size_t count) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = value;
  }
}

template <class T>
hipError_t fill_async(void* to, T value, size_t count, hipStream_t stream) {
  if (count == 0) return cudaSuccess;
  constexpr unsigned kThreads = 256;
  constexpr size_t kMostBlocks = 4096;
  const size_t blocks = (count + kThreads - 1) / kThreads;
  fill<T><<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0,
            stream>>>(static_cast<T*>(to), value, count);
  return cudaGetLastError();
}

}  // namespace hipcuda

#define hipMemsetD32Async(to, value, count, ...) \
  ::hipcuda::fill_async<int>((to), (value), (count), ::hipcuda::stream_or_default(__VA_ARGS__))
#define hipMemsetD32(to, value, count) ::hipcuda::fill_async<int>((to), (value), (count), 0)

namespace hipcuda {
HIPCUDA_HOST hipStream_t stream_or_default(hipStream_t stream = nullptr) { return stream; }
}  // namespace hipcuda
