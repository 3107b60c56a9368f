// What containers, new and delete, static objects and virtual functions are made of besides headers.
// A failure that would be an exception ends the process with a line on stderr, as exceptions are off.
#include <memory>
#include <new>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <system_error>

extern "C" {
// This library's name for what runs at the end of the process: it is never unloaded before. Weak,
// since the code that registers a GPU's kernels has it, too.
__attribute__((weak, visibility("hidden"))) void* __dso_handle = &__dso_handle;

int __cxa_thread_atexit_impl(void (*function)(void*), void* object, void* library);
int __cxa_thread_atexit(void (*function)(void*), void* object, void* library) {
  return __cxa_thread_atexit_impl(function, object, library);
}
void __cxa_pure_virtual() {
  fputs("a pure virtual function was called\n", stderr);
  abort();
}
}

static void* allocate(size_t size) {
  void* memory = malloc(size != 0 ? size : 1);
  if (memory != nullptr) return memory;
  fputs("operator new: out of memory\n", stderr);
  abort();
}

static void* allocate(size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  const size_t least = sizeof(void*);
  const size_t wanted = static_cast<size_t>(alignment);
  if (posix_memalign(&memory, wanted < least ? least : wanted, size) == 0) return memory;
  fputs("operator new: out of memory\n", stderr);
  abort();
}

const std::nothrow_t std::nothrow{};

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return malloc(size != 0 ? size : 1);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return malloc(size != 0 ? size : 1);
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { free(memory); }

namespace std {
void terminate() noexcept { abort(); }
}  // namespace std

_LIBCPP_BEGIN_NAMESPACE_STD

void __throw_system_error(int, const char* what) {
  fputs(what, stderr);
  abort();
}

void __libcpp_verbose_abort(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputs("\n", stderr);
  abort();
}

// Of a hash table: the least prime that is not below `least`.
size_t __next_prime(size_t least) {
  for (size_t found = least < 2 ? 2 : least;; ++found) {
    bool prime = true;
    for (size_t divisor = 2; prime && divisor <= found / divisor; ++divisor) {
      prime = found % divisor != 0;
    }
    if (prime) return found;
  }
}

__shared_count::~__shared_count() {}
__shared_weak_count::~__shared_weak_count() {}

// The owners together count as one who watches.
void __shared_weak_count::__release_weak() noexcept {
  if (__atomic_fetch_sub(&__shared_weak_owners_, 1, __ATOMIC_ACQ_REL) == 0) {
    __on_zero_shared_weak();
  }
}

__shared_weak_count* __shared_weak_count::lock() noexcept {
  long owners = __atomic_load_n(&__shared_owners_, __ATOMIC_SEQ_CST);
  while (owners != -1) {
    if (__atomic_compare_exchange_n(&__shared_owners_, &owners, owners + 1, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return this;
    }
  }
  return nullptr;
}

const void* __shared_weak_count::__get_deleter(const type_info&) const noexcept { return nullptr; }

_LIBCPP_END_NAMESPACE_STD
