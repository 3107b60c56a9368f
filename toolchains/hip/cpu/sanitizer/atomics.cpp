// Atomic operations and fences, which the compiler leaves to the sanitizer. A block runs on a
// single host thread, so plain operations suffice.
#include "access.h"

using namespace hipcpu;

namespace {

// The orders of memory, as the compiler numbers them.
constexpr int kRelaxed = 0;
constexpr int kRelease = 3;

void before_write(int order) {
  if (order >= kRelease) pass_fence(true);
}

// Checks an operation, and acquires and releases what it orders.
void note(const volatile void* address, size_t bytes, bool write, bool read, int order,
          const Caller& caller) {
  const Access access = {reinterpret_cast<uintptr_t>(address), bytes, write, true};
  Cell* cell = check(access, caller);
  if (cell == nullptr) return;
  if (read) acquire(cell->released);
  if (!write) return;
  before_write(order);
  const uint32_t time = release();
  // A read-modify-write keeps what others have released here.
  if (!read || time > cell->released) cell->released = time;
}

template <class T>
T compare_exchange(volatile T* address, T expected, T desired) {
  const T old = *address;
  if (old == expected) *address = desired;
  return old;
}

}  // namespace

extern "C" {

#define HIPCPU_UPDATE(bits, name, expression)                                                     \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* a, uint##bits##_t value,   \
                                              int order) {                                        \
    note(a, sizeof *a, true, true, order, HIPCPU_CALLER);                                         \
    const uint##bits##_t old = *a;                                                                \
    *a = static_cast<uint##bits##_t>(expression);                                                 \
    return old;                                                                                   \
  }
#define HIPCPU_ATOMICS(bits)                                                                      \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* a, int order) {        \
    note(a, sizeof *a, false, true, order, HIPCPU_CALLER);                                        \
    return *a;                                                                                    \
  }                                                                                               \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* a, uint##bits##_t value, int order) { \
    note(a, sizeof *a, true, false, order, HIPCPU_CALLER);                                        \
    *a = value;                                                                                   \
  }                                                                                               \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                      \
      volatile uint##bits##_t* a, uint##bits##_t expected, uint##bits##_t desired, int order,     \
      int) {                                                                                      \
    note(a, sizeof *a, true, true, order, HIPCPU_CALLER);                                         \
    return compare_exchange<uint##bits##_t>(a, expected, desired);                                \
  }                                                                                               \
  HIPCPU_UPDATE(bits, exchange, ((void)old, value))                                               \
  HIPCPU_UPDATE(bits, fetch_add, old + value)                                                     \
  HIPCPU_UPDATE(bits, fetch_sub, old - value)                                                     \
  HIPCPU_UPDATE(bits, fetch_and, old & value)                                                     \
  HIPCPU_UPDATE(bits, fetch_or, old | value)                                                      \
  HIPCPU_UPDATE(bits, fetch_xor, old ^ value)                                                     \
  HIPCPU_UPDATE(bits, fetch_nand, ~(old & value))
HIPCPU_ATOMICS(8)
HIPCPU_ATOMICS(16)
HIPCPU_ATOMICS(32)
HIPCPU_ATOMICS(64)

void __tsan_atomic_thread_fence(int order) {
  if (hipcpu_context.in_kernel && order > kRelaxed) pass_fence(true);
}

// __threadfence_block(): the threads of a block share a host thread.
void __tsan_atomic_signal_fence(int order) {
  if (hipcpu_context.in_kernel && order > kRelaxed) pass_fence(false);
}

}
