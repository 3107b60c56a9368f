// Memory. Device memory is host memory. A copy is done, in stream order, when its call returns.
#pragma once

#include <hipcpu/errors.h>
#include <hipcpu/launch.h>

typedef enum hipMemcpyKind {
  hipMemcpyHostToHost = 0,
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4,
} hipMemcpyKind;

typedef void* hipDeviceptr_t;

#define hipHostMallocDefault 0x0
#define hipHostMallocPortable 0x1
#define hipHostMallocMapped 0x2
#define hipMemAttachGlobal 0x01
#define hipMemAttachHost 0x02

extern "C" {
/// Whole pages of memory, not initialised. Zero bytes give a null pointer.
hipError_t hipcpu_malloc(void** pointer, size_t bytes) noexcept;
/// The same, but host code may access the memory, too.
hipError_t hipcpu_malloc_pinned(void** pointer, size_t bytes) noexcept;
/// Frees device or pinned memory, or null; anything else is hipErrorInvalidValue.
hipError_t hipFree(void* pointer) noexcept;
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) noexcept;
hipError_t hipMemset(void* to, int value, size_t bytes) noexcept;
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) noexcept;
hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                       size_t width, size_t height, hipMemcpyKind kind) noexcept;
/// Gives the same address, if `host` is memory of hipHostMalloc or hipMallocManaged.
hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned flags) noexcept;
hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) noexcept;
hipError_t hipcpu_copy_to_symbol(void* to, const void* from, size_t bytes, size_t symbol_bytes,
                                 size_t offset, hipMemcpyKind kind) noexcept;
hipError_t hipcpu_copy_from_symbol(void* to, const void* from, size_t bytes, size_t symbol_bytes,
                                   size_t offset, hipMemcpyKind kind) noexcept;
}

template <class T>
hipError_t hipMalloc(T** pointer, size_t bytes) {
  return hipcpu_malloc(reinterpret_cast<void**>(pointer), bytes);
}
template <class T>
hipError_t hipMallocManaged(T** pointer, size_t bytes, unsigned = hipMemAttachGlobal) {
  return hipcpu_malloc_pinned(reinterpret_cast<void**>(pointer), bytes);
}
template <class T>
hipError_t hipMallocAsync(T** pointer, size_t bytes, hipStream_t) {
  return hipMalloc(pointer, bytes);
}
template <class T>
hipError_t hipHostMalloc(T** pointer, size_t bytes, unsigned = hipHostMallocDefault) {
  return hipcpu_malloc_pinned(reinterpret_cast<void**>(pointer), bytes);
}
HIPCPU_INLINE hipError_t hipFreeAsync(void* pointer, hipStream_t) { return hipFree(pointer); }
HIPCPU_INLINE hipError_t hipHostFree(void* pointer) { return hipFree(pointer); }
HIPCPU_INLINE hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes,
                                        hipMemcpyKind kind, hipStream_t = nullptr) {
  return hipMemcpy(to, from, bytes, kind);
}
HIPCPU_INLINE hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                          size_t from_pitch, size_t width, size_t height,
                                          hipMemcpyKind kind, hipStream_t = nullptr) {
  return hipMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
HIPCPU_INLINE hipError_t hipMemsetAsync(void* to, int value, size_t bytes,
                                        hipStream_t = nullptr) {
  return hipMemset(to, value, bytes);
}
HIPCPU_INLINE hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count,
                                           hipStream_t = nullptr) {
  return hipMemsetD32(to, value, count);
}
HIPCPU_INLINE hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice);
}
HIPCPU_INLINE hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void* from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
}
HIPCPU_INLINE hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}
HIPCPU_INLINE hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                                            hipStream_t) {
  return hipMemcpyDtoD(to, from, bytes);
}
HIPCPU_INLINE hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void* from, size_t bytes,
                                            hipStream_t) {
  return hipMemcpyHtoD(to, from, bytes);
}
HIPCPU_INLINE hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes,
                                            hipStream_t) {
  return hipMemcpyDtoH(to, from, bytes);
}

// A symbol is a __device__ or __constant__ variable, which is an ordinary variable here.
template <class T>
hipError_t hipMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                             hipMemcpyKind kind = hipMemcpyHostToDevice) {
  char* start = reinterpret_cast<char*>(&const_cast<char&>(reinterpret_cast<const char&>(symbol)));
  return hipcpu_copy_to_symbol(start + offset, from, bytes, sizeof(T), offset, kind);
}
template <class T>
hipError_t hipMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                               hipMemcpyKind kind = hipMemcpyDeviceToHost) {
  const char* start = &reinterpret_cast<const char&>(symbol);
  return hipcpu_copy_from_symbol(to, start + offset, bytes, sizeof(T), offset, kind);
}
template <class T>
hipError_t hipMemcpyToSymbolAsync(T& symbol, const void* from, size_t bytes, size_t offset,
                                  hipMemcpyKind kind, hipStream_t = nullptr) {
  return hipMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
hipError_t hipMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset,
                                    hipMemcpyKind kind, hipStream_t = nullptr) {
  return hipMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <class T>
hipError_t hipGetSymbolAddress(void** address, const T& symbol) {
  *address = &const_cast<char&>(reinterpret_cast<const char&>(symbol));
  return hipSuccess;
}
template <class T>
hipError_t hipGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return hipSuccess;
}
