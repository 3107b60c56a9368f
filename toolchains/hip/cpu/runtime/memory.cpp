// Allocation and copies.
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "lock.h"
#include "observer.h"
#include "runtime.h"

namespace hipcpu {

namespace {

constexpr size_t kAlignment = 256;

// Memory of hipMalloc that is not yet freed. Programs hold a handful of buffers, so a search from
// the newest is quick.
struct Allocations {
  Lock lock;
  void** items;
  size_t count;
  size_t capacity;
};
Allocations allocations;

bool add(void* pointer) {
  if (allocations.count == allocations.capacity) {
    const size_t capacity = allocations.capacity == 0 ? 64 : 2 * allocations.capacity;
    void* grown = realloc(allocations.items, capacity * sizeof(void*));
    if (grown == nullptr) return false;
    allocations.items = static_cast<void**>(grown);
    allocations.capacity = capacity;
  }
  allocations.items[allocations.count++] = pointer;
  return true;
}

bool remove(void* pointer) {
  for (size_t i = allocations.count; i-- > 0;) {
    if (allocations.items[i] != pointer) continue;
    allocations.items[i] = allocations.items[--allocations.count];
    return true;
  }
  return false;
}

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
  void* memory = nullptr;
  if (bytes > SIZE_MAX / 2 || posix_memalign(&memory, kAlignment, bytes) != 0) {
    return record(hipErrorOutOfMemory);
  }
  allocations.lock.take();
  const bool added = add(memory);
  allocations.lock.leave();
  if (!added) {
    free(memory);
    return record(hipErrorOutOfMemory);
  }
  observe_allocation(memory, bytes);
  *pointer = memory;
  return hipSuccess;
}

hipError_t hipFree(void* pointer) noexcept {
  if (pointer == nullptr) return hipSuccess;
  allocations.lock.take();
  const bool ours = remove(pointer);
  allocations.lock.leave();
  if (!ours) return record(hipErrorInvalidValue);
  observe_free(pointer);
  free(pointer);
  return hipSuccess;
}

hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (!is_copy_kind(kind)) return record(hipErrorInvalidMemcpyDirection);
  if (bytes == 0) return hipSuccess;
  if (to == nullptr || from == nullptr) return record(hipErrorInvalidValue);
  memmove(to, from, bytes);
  observe_host_write(to, bytes);
  return hipSuccess;
}

hipError_t hipMemset(void* to, int value, size_t bytes) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (bytes == 0) return hipSuccess;
  if (to == nullptr) return record(hipErrorInvalidValue);
  memset(to, value, bytes);
  observe_host_write(to, bytes);
  return hipSuccess;
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (to == nullptr && count != 0) return record(hipErrorInvalidValue);
  int* words = static_cast<int*>(to);
  for (size_t i = 0; i < count; ++i) words[i] = value;
  observe_host_write(to, count * sizeof *words);
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
