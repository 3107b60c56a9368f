// Allocation and copies.
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "runtime.h"

namespace hipcpu {

namespace {

constexpr size_t kAlignment = 256;
constexpr uint64_t kMagic = 0x6b9d31f04ac275e8;

// Before each allocation; its own alignment keeps what follows aligned.
struct alignas(kAlignment) Header {
  uint64_t magic;  // distinguishes what hipMalloc gave from other pointers
  size_t bytes;
};

bool is_copy_kind(hipMemcpyKind kind) {
  return kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault;
}

}  // namespace
}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

hipError_t hipcpu_malloc(void** pointer, size_t bytes) noexcept {
  if (pointer == nullptr) return record(hipErrorInvalidValue);
  *pointer = nullptr;
  if (device_state() != hipSuccess) return record(device_state());
  if (bytes == 0) return hipSuccess;
  if (bytes > SIZE_MAX / 2) return record(hipErrorOutOfMemory);
  void* memory = nullptr;
  const size_t rounded = (bytes + kAlignment - 1) & ~(kAlignment - 1);
  if (posix_memalign(&memory, kAlignment, sizeof(Header) + rounded) != 0) {
    return record(hipErrorOutOfMemory);
  }
  Header* header = static_cast<Header*>(memory);
  header->magic = kMagic;
  header->bytes = bytes;
  *pointer = header + 1;
  return hipSuccess;
}

hipError_t hipFree(void* pointer) noexcept {
  if (pointer == nullptr) return hipSuccess;
  const bool aligned = reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0;
  Header* header = static_cast<Header*>(pointer) - 1;
  if (!aligned || header->magic != kMagic) return record(hipErrorInvalidValue);
  header->magic = 0;
  free(header);
  return hipSuccess;
}

hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (!is_copy_kind(kind)) return record(hipErrorInvalidMemcpyDirection);
  if (bytes == 0) return hipSuccess;
  if (to == nullptr || from == nullptr) return record(hipErrorInvalidValue);
  memmove(to, from, bytes);
  return hipSuccess;
}

hipError_t hipMemset(void* to, int value, size_t bytes) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (bytes == 0) return hipSuccess;
  if (to == nullptr) return record(hipErrorInvalidValue);
  memset(to, value, bytes);
  return hipSuccess;
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (to == nullptr && count != 0) return record(hipErrorInvalidValue);
  int* words = static_cast<int*>(to);
  for (size_t i = 0; i < count; ++i) words[i] = value;
  return hipSuccess;
}

hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                       size_t width, size_t height, hipMemcpyKind kind) noexcept {
  if (width > to_pitch || width > from_pitch) return record(hipErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row) {
    const hipError_t error = hipMemcpy(static_cast<char*>(to) + row * to_pitch,
                                       static_cast<const char*>(from) + row * from_pitch, width,
                                       kind);
    if (error != hipSuccess) return error;
  }
  return hipSuccess;
}

hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) noexcept {
  struct sysinfo info;
  if (free_bytes == nullptr || total_bytes == nullptr || sysinfo(&info) != 0) {
    return record(hipErrorInvalidValue);
  }
  *free_bytes = static_cast<size_t>(info.freeram) * info.mem_unit;
  *total_bytes = static_cast<size_t>(info.totalram) * info.mem_unit;
  return hipSuccess;
}

hipError_t hipcpu_symbol_copy(void* to, const void* from, size_t bytes, size_t symbol_bytes,
                              size_t offset, hipMemcpyKind kind) noexcept {
  if (offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return record(hipErrorInvalidValue);
  }
  return hipMemcpy(to, from, bytes, kind);
}

}
