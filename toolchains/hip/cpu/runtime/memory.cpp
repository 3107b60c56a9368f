// Allocation and copies.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "hiding.h"
#include "lock.h"
#include "observer.h"
#include "runtime.h"

namespace hipcpu {

namespace {

// Device and pinned memory that is not yet freed. Programs hold a handful of buffers, so a search
// from the newest is quick.
struct Allocations {
  Lock lock;
  Allocation* items;
  size_t count;
  size_t capacity;
};
Allocations allocations;

bool add(const Allocation& allocation) {
  if (allocations.count == allocations.capacity) {
    const size_t capacity = allocations.capacity == 0 ? 64 : 2 * allocations.capacity;
    void* grown = realloc(allocations.items, capacity * sizeof(Allocation));
    if (grown == nullptr) return false;
    allocations.items = static_cast<Allocation*>(grown);
    allocations.capacity = capacity;
  }
  allocations.items[allocations.count++] = allocation;
  return true;
}

// Removes an allocation; returns its bytes, or 0 if there is none.
size_t remove(const void* pointer) {
  for (size_t i = allocations.count; i-- > 0;) {
    if (allocations.items[i].base != pointer) continue;
    const size_t bytes = allocations.items[i].bytes;
    allocations.items[i] = allocations.items[--allocations.count];
    return bytes;
  }
  return 0;
}

hipError_t allocate(void** pointer, size_t bytes, bool pinned) {
  if (pointer == nullptr) return record(hipErrorInvalidValue);
  *pointer = nullptr;
  if (device_state() != hipSuccess) return record(device_state());
  if (bytes == 0) return hipSuccess;
  void* memory = nullptr;
  // Only memory in its own pages can be hidden from host code.
  const size_t whole = (bytes + kPage - 1) & ~(kPage - 1);
  if (bytes > SIZE_MAX / 2 || posix_memalign(&memory, kPage, whole) != 0) {
    return record(hipErrorOutOfMemory);
  }
  const Allocation made = {static_cast<char*>(memory), whole, pinned};
  lock_allocations();
  const bool added = add(made);
  unlock_allocations();
  if (!added) {
    free(memory);
    return record(hipErrorOutOfMemory);
  }
  hide_new(made);
  observe_allocation(memory, bytes);
  *pointer = memory;
  return hipSuccess;
}

bool is_pinned(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  bool pinned = false;
  lock_allocations();
  for (size_t i = 0; i < allocations.count && !pinned; ++i) {
    const Allocation& item = allocations.items[i];
    pinned = item.pinned && byte >= item.base && byte < item.base + item.bytes;
  }
  unlock_allocations();
  return pinned;
}

bool is_copy_kind(hipMemcpyKind kind) {
  return kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault;
}

using Count = void (*)(const void* to, const void* from, size_t bytes, const uint64_t* flag);

// Reads a flag only once, so that host code gets the bytes that were counted.
hipError_t copy(void* to, const void* from, size_t bytes, hipMemcpyKind kind, Count count) {
  if (device_state() != hipSuccess) return record(device_state());
  if (!is_copy_kind(kind)) return record(hipErrorInvalidMemcpyDirection);
  if (bytes == 0) return hipSuccess;
  if (to == nullptr || from == nullptr) return record(hipErrorInvalidValue);
  if (bytes > kFlagBytes) count(to, from, bytes, nullptr);
  const Visible visible;
  if (!visible.ok) return record(hipErrorOutOfMemory);
  if (bytes > kFlagBytes) {
    memmove(to, from, bytes);
  } else {
    uint64_t flag = 0;
    memcpy(&flag, from, bytes);
    count(to, from, bytes, &flag);
    memcpy(to, &flag, bytes);
  }
  observe_host_write(to, bytes);
  return hipSuccess;
}

// For copies to a device variable. It is ordinary memory here, but counts as the device's.
void count_nothing(const void*, const void*, size_t, const uint64_t*) {}

}  // namespace

void lock_allocations() { allocations.lock.take(); }

void unlock_allocations() { allocations.lock.leave(); }

const Allocation* list_allocations(size_t* count) {
  *count = allocations.count;
  return allocations.items;
}

}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

hipError_t hipcpu_malloc(void** pointer, size_t bytes) noexcept {
  return allocate(pointer, bytes, false);
}

hipError_t hipcpu_malloc_pinned(void** pointer, size_t bytes) noexcept {
  return allocate(pointer, bytes, true);
}

hipError_t hipFree(void* pointer) noexcept {
  if (pointer == nullptr) return hipSuccess;
  lock_allocations();
  const size_t bytes = remove(pointer);
  unlock_allocations();
  if (bytes == 0) return record(hipErrorInvalidValue);
  observe_free(pointer);
  show_old({static_cast<char*>(pointer), bytes, false});
  free(pointer);
  return hipSuccess;
}

hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) noexcept {
  return copy(to, from, bytes, kind, count_copy);
}

hipError_t hipMemset(void* to, int value, size_t bytes) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (bytes == 0) return hipSuccess;
  if (to == nullptr) return record(hipErrorInvalidValue);
  const Visible visible;
  if (!visible.ok) return record(hipErrorOutOfMemory);
  memset(to, value, bytes);
  observe_host_write(to, bytes);
  return hipSuccess;
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) noexcept {
  if (device_state() != hipSuccess) return record(device_state());
  if (to == nullptr && count != 0) return record(hipErrorInvalidValue);
  const Visible visible;
  if (!visible.ok) return record(hipErrorOutOfMemory);
  int* words = static_cast<int*>(to);
  for (size_t i = 0; i < count; ++i) words[i] = value;
  observe_host_write(to, count * sizeof *words);
  return hipSuccess;
}

hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                       size_t width, size_t height, hipMemcpyKind kind) noexcept {
  if (width > to_pitch || width > from_pitch) return record(hipErrorInvalidPitchValue);
  const size_t pitch = to_pitch < from_pitch ? from_pitch : to_pitch;
  if (height != 0 && pitch > SIZE_MAX / height) return record(hipErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row) {
    const hipError_t error = hipMemcpy(static_cast<char*>(to) + row * to_pitch,
                                       static_cast<const char*>(from) + row * from_pitch, width,
                                       kind);
    if (error != hipSuccess) return error;
  }
  return hipSuccess;
}

hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned flags) noexcept {
  if (device == nullptr || flags != 0) return record(hipErrorInvalidValue);
  *device = is_pinned(host) ? host : nullptr;
  return *device == nullptr ? record(hipErrorInvalidValue) : hipSuccess;
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

hipError_t hipcpu_copy_to_symbol(void* to, const void* from, size_t bytes, size_t symbol_bytes,
                                 size_t offset, hipMemcpyKind kind) noexcept {
  if (offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return record(hipErrorInvalidValue);
  }
  return copy(to, from, bytes, kind, count_nothing);
}

hipError_t hipcpu_copy_from_symbol(void* to, const void* from, size_t bytes, size_t symbol_bytes,
                                   size_t offset, hipMemcpyKind kind) noexcept {
  if (offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return record(hipErrorInvalidValue);
  }
  return copy(to, from, bytes, kind, count_symbol_copy);
}

}
