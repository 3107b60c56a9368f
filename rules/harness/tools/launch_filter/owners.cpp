#include "owners.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

namespace {

constexpr size_t kPlaces = 1 << 16;
constexpr size_t kMost = kPlaces / 2;  // keeps searches short

Handle g_handles[kPlaces];
size_t g_used;
volatile char g_locked;

size_t first_place(const void* handle) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(handle);
  return (bits >> 4) * 0x9E3779B97F4A7C15u >> 48;
}

}  // namespace

Lock::Lock() {
  while (__atomic_test_and_set(&g_locked, __ATOMIC_ACQUIRE)) sched_yield();
}

Lock::~Lock() { __atomic_clear(&g_locked, __ATOMIC_RELEASE); }

Handle* find(const void* handle, bool make) {
  for (size_t place = first_place(handle);; place = (place + 1) % kPlaces) {
    Handle* found = &g_handles[place];
    if (found->handle == handle) return found;
    if (found->handle != nullptr) continue;
    if (!make || g_used == kMost) return nullptr;
    ++g_used;
    found->handle = handle;
    return found;
  }
}

void own(const void* handle, const void* home, Owner owner) {
  Lock lock;
  Handle* found = handle == nullptr ? nullptr : find(handle, true);
  if (found == nullptr || (found->owner == owner && found->home == home)) return;
  *found = {handle, home, owner, false, 0, -1, nullptr};
}

void own_as(const void* handle, const void* in) {
  const void* home = nullptr;
  Owner owner = kUnknown;
  {
    Lock lock;
    const Handle* found = in == nullptr ? nullptr : find(in, false);
    if (found != nullptr) {
      home = found->home;
      owner = found->owner;
    }
  }
  if (owner != kUnknown && owner != kForeign) own(handle, home, owner);
}

Owner owner_of(const void* handle) {
  Lock lock;
  const Handle* found = handle == nullptr ? nullptr : find(handle, false);
  return found == nullptr ? kUnknown : found->owner;
}

void note_name(const void* handle, const char* text) {
  Lock lock;
  Handle* found = handle == nullptr || text == nullptr ? nullptr : find(handle, true);
  if (found == nullptr || (found->name != nullptr && strcmp(found->name, text) == 0)) return;
  found->name = strdup(text);  // the old one is not freed: another thread may be reading it
}

const char* noted_name(const void* handle) {
  Lock lock;
  const Handle* found = handle == nullptr ? nullptr : find(handle, false);
  return found == nullptr ? nullptr : found->name;
}

void forget(const void* home) {
  Lock lock;
  for (Handle& each : g_handles) {
    // A used place stays used, or searches would end too early.
    if (each.home == home) each = {each.handle, nullptr, kUnknown, false, 0, -1, nullptr};
  }
}
