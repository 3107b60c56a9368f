// The functions that instrumented code calls: those of the sanitizers that the compiler uses.
#include <string.h>

#include "requests.h"

using namespace hipcpu;

namespace {

constexpr size_t kWidest = 16;  // bytes that a thread moves at once

void count(const void* address, size_t bytes, bool write, const Caller& caller) {
  if (!hipcpu_context.in_kernel) return;
  count_access(reinterpret_cast<uintptr_t>(address), bytes,
               write ? Operation::kStore : Operation::kLoad, caller);
}

// A copy of any size is made of the widest pieces that divide it.
void count_copy(const void* address, size_t bytes, bool write, const Caller& caller) {
  const size_t piece = (bytes | kWidest) & -(bytes | kWidest);
  for (size_t at = 0; at < bytes; at += piece) {
    count(static_cast<const char*>(address) + at, piece, write, caller);
  }
}

void count_atomic(const volatile void* address, size_t bytes, const Caller& caller) {
  if (!hipcpu_context.in_kernel) return;
  count_access(reinterpret_cast<uintptr_t>(address), bytes, Operation::kAtomic, caller);
}

// As the compiler lays them out.
struct Variable {
  uintptr_t begin;
  size_t bytes;
  size_t padded_bytes;
  const char* name;
  const char* module;
  uintptr_t has_initialiser;
  const void* location;
  uintptr_t indicator;
};

// `void kernel<float>(float*)::tile` is called `tile`.
const char* short_name(const char* name) {
  const char* colon = strrchr(name, ':');
  return colon == nullptr ? name : colon + 1;
}

}  // namespace

extern "C" {

#define HIPCPU_KIND(kind, bytes)                                                              \
  void __tsan_##kind##read##bytes(const void* a) { count(a, bytes, false, HIPCPU_CALLER); }   \
  void __tsan_##kind##write##bytes(const void* a) { count(a, bytes, true, HIPCPU_CALLER); }
#define HIPCPU_ACCESSES(bytes)              \
  HIPCPU_KIND(, bytes)                      \
  HIPCPU_KIND(unaligned_, bytes)            \
  HIPCPU_KIND(volatile_, bytes)             \
  HIPCPU_KIND(unaligned_volatile_, bytes)
HIPCPU_ACCESSES(1)
HIPCPU_ACCESSES(2)
HIPCPU_ACCESSES(4)
HIPCPU_ACCESSES(8)
HIPCPU_ACCESSES(16)
#undef HIPCPU_ACCESSES
#undef HIPCPU_KIND

// Each of the two sanitizers has its own names for these.
#define HIPCPU_MEMORY(prefix)                                              \
  void* prefix##_memcpy(void* to, const void* from, size_t bytes) {        \
    count_copy(from, bytes, false, HIPCPU_CALLER);                         \
    count_copy(to, bytes, true, HIPCPU_CALLER);                            \
    return memcpy(to, from, bytes);                                        \
  }                                                                        \
  void* prefix##_memmove(void* to, const void* from, size_t bytes) {       \
    count_copy(from, bytes, false, HIPCPU_CALLER);                         \
    count_copy(to, bytes, true, HIPCPU_CALLER);                            \
    return memmove(to, from, bytes);                                       \
  }                                                                        \
  void* prefix##_memset(void* to, int value, size_t bytes) {               \
    count_copy(to, bytes, true, HIPCPU_CALLER);                            \
    return memset(to, value, bytes);                                       \
  }
HIPCPU_MEMORY(__asan)
HIPCPU_MEMORY(__tsan)
#undef HIPCPU_MEMORY

#define HIPCPU_UPDATE(bits, name, expression)                                                     \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* a, uint##bits##_t value,   \
                                              int) {                                              \
    count_atomic(a, sizeof *a, HIPCPU_CALLER);                                                    \
    const uint##bits##_t old = *a;                                                                \
    *a = static_cast<uint##bits##_t>(expression);                                                 \
    return old;                                                                                   \
  }
#define HIPCPU_ATOMICS(bits)                                                                      \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* a, int) {              \
    if (hipcpu_context.in_kernel) {                                                               \
      count_atomic_load(reinterpret_cast<uintptr_t>(a), sizeof *a, HIPCPU_CALLER);                \
    }                                                                                             \
    return *a;                                                                                    \
  }                                                                                               \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* a, uint##bits##_t value, int) {       \
    count(const_cast<const uint##bits##_t*>(a), sizeof *a, true, HIPCPU_CALLER);                  \
    *a = value;                                                                                   \
  }                                                                                               \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                      \
      volatile uint##bits##_t* a, uint##bits##_t expected, uint##bits##_t desired, int, int) {    \
    count_atomic(a, sizeof *a, HIPCPU_CALLER);                                                    \
    const uint##bits##_t old = *a;                                                                \
    if (old == expected) *a = desired;                                                            \
    return old;                                                                                   \
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

// Memory orders and wrong addresses are left to the sanitizer.
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
void __ubsan_handle_out_of_bounds(const void*, uintptr_t) {}
void __tsan_init() {}
// A value that cannot be an address encodes arithmetic: its kind and amount (see arithmetic.py).
void __tsan_vptr_read(const void* told) {
  const uint64_t code = reinterpret_cast<uintptr_t>(told);
  if (code >> 63 == 0 || !hipcpu_context.in_kernel) return;
  count_arithmetic(static_cast<uint32_t>(code >> 32) & 0xff, static_cast<uint32_t>(code),
                   HIPCPU_CALLER);
}
// Without an object this is a branch, and `value` says whether it is taken (see branches.py).
void __tsan_vptr_update(const void* object, const void* value) {
  if (object != nullptr || !hipcpu_context.in_kernel) return;
  count_branch(value != nullptr, HIPCPU_CALLER);
}
void __asan_init() {}
void __asan_version_mismatch_check_v8() {}
void __asan_handle_no_return() {}

void __asan_register_elf_globals(uintptr_t* registered, const Variable* begin,
                                 const Variable* end) {
  if (*registered != 0 || begin == end) return;
  *registered = 1;
  for (const Variable* variable = begin; variable != end; ++variable) {
    add_region(Kind::kVariable, reinterpret_cast<const void*>(variable->begin), variable->bytes,
               variable->padded_bytes, short_name(variable->name), true);
  }
}

void __asan_unregister_elf_globals(uintptr_t*, const Variable* begin, const Variable* end) {
  for (const Variable* variable = begin; variable != end; ++variable) {
    remove_region(reinterpret_cast<const void*>(variable->begin));
  }
}

void hipcpu_sanitizer_module(const char* begin, const char* end, const char* shared_begin,
                             const char* shared_end) noexcept {
  image = {reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(end)};
  mark_shared(shared_begin, shared_end);
}

void hipcpu_sanitizer_buffer(const void* memory, size_t bytes, const char* name,
                             int initialised) noexcept {
  add_region(Kind::kTensor, memory, bytes, bytes, name, initialised != 0);
}

}
