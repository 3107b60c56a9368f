// The functions that the compiler's instrumentation calls: clang's thread sanitizer for accesses,
// its address sanitizer for variables and the gaps between them, its check of array bounds.
#include <stdio.h>
#include <string.h>

#include "access.h"

using namespace hipcpu;

namespace {

void plain(const void* address, size_t bytes, bool write, const Caller& caller) {
  check({reinterpret_cast<uintptr_t>(address), bytes, write, false}, caller);
}

void open_to_others(const void* address, size_t bytes, bool write, const Caller& caller) {
  Cell* cell = check({reinterpret_cast<uintptr_t>(address), bytes, write, true}, caller);
  if (cell == nullptr) return;
  if (write) {
    cell->released = release();
  } else {
    acquire(cell->released);
  }
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

struct Place {
  const char* file;
  uint32_t line;
  uint32_t column;
};

struct Type {
  uint16_t kind;
  uint16_t info;
  char name[1];
};

struct OutOfBounds {
  Place place;
  const Type* array;
  const Type* index;
};

// `void kernel<float>(float*)::tile` is called `tile`.
const char* short_name(const char* name) {
  const char* colon = strrchr(name, ':');
  return colon == nullptr ? name : colon + 1;
}

long long signed_index(const Type& type, uintptr_t value) {
  const uint32_t bits = 1u << (type.info >> 1);
  const bool is_signed = (type.info & 1) != 0;
  if (!is_signed || bits >= 64) return static_cast<long long>(value);
  return static_cast<long long>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
}

}  // namespace

extern "C" {

#define HIPCPU_ACCESSES(bytes)                                                             \
  void __tsan_read##bytes(const void* a) { plain(a, bytes, false, HIPCPU_CALLER); }        \
  void __tsan_write##bytes(const void* a) { plain(a, bytes, true, HIPCPU_CALLER); }        \
  void __tsan_unaligned_read##bytes(const void* a) {                                       \
    plain(a, bytes, false, HIPCPU_CALLER);                                                 \
  }                                                                                        \
  void __tsan_unaligned_write##bytes(const void* a) {                                      \
    plain(a, bytes, true, HIPCPU_CALLER);                                                  \
  }                                                                                        \
  void __tsan_volatile_read##bytes(const void* a) {                                        \
    open_to_others(a, bytes, false, HIPCPU_CALLER);                                        \
  }                                                                                        \
  void __tsan_volatile_write##bytes(const void* a) {                                       \
    open_to_others(a, bytes, true, HIPCPU_CALLER);                                         \
  }                                                                                        \
  void __tsan_unaligned_volatile_read##bytes(const void* a) {                              \
    open_to_others(a, bytes, false, HIPCPU_CALLER);                                        \
  }                                                                                        \
  void __tsan_unaligned_volatile_write##bytes(const void* a) {                             \
    open_to_others(a, bytes, true, HIPCPU_CALLER);                                         \
  }
HIPCPU_ACCESSES(1)
HIPCPU_ACCESSES(2)
HIPCPU_ACCESSES(4)
HIPCPU_ACCESSES(8)
HIPCPU_ACCESSES(16)
#undef HIPCPU_ACCESSES

// Each of the two sanitizers has its own names for these.
#define HIPCPU_MEMORY(prefix)                                                              \
  void* prefix##_memcpy(void* to, const void* from, size_t bytes) {                        \
    plain(from, bytes, false, HIPCPU_CALLER);                                              \
    plain(to, bytes, true, HIPCPU_CALLER);                                                 \
    return memcpy(to, from, bytes);                                                        \
  }                                                                                        \
  void* prefix##_memmove(void* to, const void* from, size_t bytes) {                       \
    plain(from, bytes, false, HIPCPU_CALLER);                                              \
    plain(to, bytes, true, HIPCPU_CALLER);                                                 \
    return memmove(to, from, bytes);                                                       \
  }                                                                                        \
  void* prefix##_memset(void* to, int value, size_t bytes) {                               \
    plain(to, bytes, true, HIPCPU_CALLER);                                                 \
    return memset(to, value, bytes);                                                       \
  }
HIPCPU_MEMORY(__asan)
HIPCPU_MEMORY(__tsan)
#undef HIPCPU_MEMORY

void __tsan_init() {}
void __tsan_vptr_read(const void*) {}
void __tsan_vptr_update(const void*, const void*) {}

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

void __ubsan_handle_out_of_bounds(const OutOfBounds* data, uintptr_t index) {
  if (!hipcpu_context.in_kernel) return;
  settle_last_write();
  PlaceText place = {};
  snprintf(place.text, sizeof place.text, "at:%s:%u:%u", data->place.file, data->place.line,
           data->place.column);
  const Context& context = hipcpu_context;
  found("OUT_OF_BOUNDS", place.text, "",
        "index %lld is outside an array of type %s, by block (%u,%u,%u) thread (%u,%u,%u)",
        signed_index(*data->index, index), data->array->name, context.block.x, context.block.y,
        context.block.z, context.thread.x, context.thread.y, context.thread.z);
  hipcpu_fail("the sanitizer ended the kernel");
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
