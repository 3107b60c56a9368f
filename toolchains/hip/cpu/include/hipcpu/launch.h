// From `kernel<<<grid, block, shared, stream>>>(arguments)` to a loop over threads.
#pragma once

#include <hipcpu/context.h>
#include <hipcpu/errors.h>

typedef struct hipcpu_stream* hipStream_t;

extern "C" {
/// Runs `body(arguments)` until every thread of the grid has run; records and returns the error.
hipError_t hipcpu_launch(const dim3* grid, const dim3* block, size_t shared_bytes,
                         hipStream_t stream, void (*body)(const void*), const void* arguments,
                         uint32_t wave_size) noexcept;

/// Makes the next thread of the block, or the first of another block, current on this fiber.
/// False if nothing is left for this fiber to run.
bool hipcpu_next_thread() noexcept;
}

namespace hipcpu {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  hipStream_t stream;
};

// The launch parameters between `<<<` and `>>>`.
HIPCPU_INLINE LaunchShape launch_shape(dim3 grid, dim3 block, size_t shared_bytes = 0,
                                       hipStream_t stream = nullptr) {
  return {grid, block, shared_bytes, stream};
}

#ifndef HIPCPU_SANITIZE
// Runs threads one after the other on the calling fiber until one of them waits; then the others
// run on their own fibers. The inner loop counts in registers, so a kernel without barriers is
// an ordinary loop over threadIdx.x that the compiler may vectorise. The thread is called in one
// place only, since each call would compile another copy of the kernel.
template <class Thread>
void run_threads(const void* arguments) {
  const Thread thread = *static_cast<const Thread*>(arguments);
  Context& context = hipcpu_context;
  do {
    uint32_t x = context.thread.x;
    uint32_t current = context.current;
    const uint32_t row_end = context.block_dim.x;
    for (;;) {
      thread();
      if (context.interleaved || ++x >= row_end) break;
      context.thread.x = x;
      context.current = ++current;
    }
  } while (hipcpu_next_thread());
}
#else
// The sanitizer observes each thread, so nothing may be moved out of the loop over them.
template <class Thread>
void run_threads(const void* arguments) {
  const Thread thread = *static_cast<const Thread*>(arguments);
  do {
    thread();
  } while (hipcpu_next_thread());
}
#endif

template <class Kernel, class... Arguments>
hipError_t launch(const LaunchShape& shape, Kernel kernel, Arguments... arguments) {
  auto thread = [=]() __attribute__((always_inline)) { kernel(arguments...); };
  return hipcpu_launch(&shape.grid, &shape.block, shape.shared_bytes, shape.stream,
                       &run_threads<decltype(thread)>, &thread, HIPCPU_WAVE_SIZE);
}

// hipLaunchKernel takes its arguments as an array of pointers, one per parameter.
template <unsigned... Index>
struct Indices {};
template <unsigned N, unsigned... Index>
struct MakeIndices : MakeIndices<N - 1, N - 1, Index...> {};
template <unsigned... Index>
struct MakeIndices<0, Index...> {
  using type = Indices<Index...>;
};

template <class T>
struct Unqualified {
  using type = T;
};
template <class T>
struct Unqualified<const T> {
  using type = T;
};

template <class... Parameters, unsigned... Index>
hipError_t launch_array(const LaunchShape& shape, void (*kernel)(Parameters...), void** arguments,
                        Indices<Index...>) {
  return launch(shape, kernel,
                *static_cast<typename Unqualified<Parameters>::type*>(arguments[Index])...);
}

}  // namespace hipcpu

// Where clang reads a source as HIP, only what is launched may be called: driver/separation.py finds
// the call by its arguments, and writes `<<<1, 1>>>` before them.
#ifdef HIPCPU_EXPLAINED
#define HIPCPU_AS_LAUNCHED <<<1, 1>>>
#else
#define HIPCPU_AS_LAUNCHED
#endif
#define HIPCPU_LAUNCH(kernel, shape, ...)                                          \
  (::hipcpu::launch(::hipcpu::launch_shape shape,                                  \
                    [=](auto... hipcpu_arguments) __attribute__((always_inline)) { \
                      kernel HIPCPU_AS_LAUNCHED(hipcpu_arguments...);              \
                    },                                                             \
                    ##__VA_ARGS__))

#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  HIPCPU_LAUNCH((kernel), (grid, block, shared_bytes, stream), ##__VA_ARGS__)

/// The typed form of hipLaunchKernel: `function` is a kernel, not a pointer to void.
template <class... Parameters>
hipError_t hipLaunchKernel(void (*function)(Parameters...), dim3 grid, dim3 block,
                           void** arguments, size_t shared_bytes = 0,
                           hipStream_t stream = nullptr) {
  return hipcpu::launch_array(hipcpu::LaunchShape{grid, block, shared_bytes, stream}, function,
                              arguments,
                              typename hipcpu::MakeIndices<sizeof...(Parameters)>::type());
}

// What clang calls for `<<<` and `>>>` where it reads a source as HIP: driver/separation.py.
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes = 0,
                                      hipStream_t stream = nullptr);
