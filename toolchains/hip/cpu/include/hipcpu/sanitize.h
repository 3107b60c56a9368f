// Only in checked builds: a kernel's library describes itself to the sanitizing runtime.
#pragma once

#include <hipcpu/barrier.h>
#include <hipcpu/launch.h>

extern "C" {
/// The image of the library, and its __shared__ variables.
void hipcpu_sanitizer_module(const char* begin, const char* end, const char* shared_begin,
                             const char* shared_end) noexcept;
/// The name in the source of the kernel that is launched next.
void hipcpu_sanitizer_kernel(const char* name) noexcept;
/// The place in the source of the barrier that the thread enters next.
void hipcpu_sanitizer_barrier(const char* file, uint32_t line) noexcept;

// Defined by the linker and by its script.
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
extern const char hipcpu_shared_begin[] __attribute__((visibility("hidden")));
extern const char hipcpu_shared_end[] __attribute__((visibility("hidden")));
}

namespace hipcpu {

// The linker's script puts the __shared__ variables after this section, so that it is never empty.
__attribute__((used, section(".data"))) static char before_shared = 0;

__attribute__((constructor)) static void announce_module() {
  hipcpu_sanitizer_module(__ehdr_start, _end, hipcpu_shared_begin, hipcpu_shared_end);
}

HIPCPU_INLINE void barrier_at(const char* file, uint32_t line) {
  hipcpu_sanitizer_barrier(file, line);
  hipcpu_barrier();
}
HIPCPU_INLINE int barrier_or_at(const char* file, uint32_t line, int predicate) {
  hipcpu_sanitizer_barrier(file, line);
  return hipcpu_barrier_or(predicate);
}
HIPCPU_INLINE int barrier_and_at(const char* file, uint32_t line, int predicate) {
  hipcpu_sanitizer_barrier(file, line);
  return hipcpu_barrier_and(predicate);
}
HIPCPU_INLINE int barrier_count_at(const char* file, uint32_t line, int predicate) {
  hipcpu_sanitizer_barrier(file, line);
  return hipcpu_barrier_count(predicate);
}

}  // namespace hipcpu

// The place is an argument because a compiler may merge two equal calls, which would merge two
// different barriers.
#define HIPCPU_PLACE __builtin_FILE(), __builtin_LINE()
#define __syncthreads() hipcpu::barrier_at(HIPCPU_PLACE)
#define __syncthreads_or(...) hipcpu::barrier_or_at(HIPCPU_PLACE, (__VA_ARGS__))
#define __syncthreads_and(...) hipcpu::barrier_and_at(HIPCPU_PLACE, (__VA_ARGS__))
#define __syncthreads_count(...) hipcpu::barrier_count_at(HIPCPU_PLACE, (__VA_ARGS__))
#undef __builtin_amdgcn_s_barrier
#define __builtin_amdgcn_s_barrier() __syncthreads()

#undef HIPCPU_LAUNCH
#define HIPCPU_LAUNCH(kernel, shape, ...)                                          \
  (hipcpu_sanitizer_kernel(#kernel),                                               \
   ::hipcpu::launch(::hipcpu::launch_shape shape,                                  \
                    [=](auto... hipcpu_arguments) __attribute__((always_inline)) { \
                      kernel(hipcpu_arguments...);                                 \
                    },                                                             \
                    ##__VA_ARGS__))
