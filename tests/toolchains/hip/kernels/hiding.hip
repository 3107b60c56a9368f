// Host code that looks at what kernels have written. Each function returns an error of HIP, or 0.
#include <hip/hip_runtime.h>

constexpr int kPage = 4096, kWords = kPage / sizeof(unsigned);

__global__ void write(unsigned* to, unsigned value, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = value + i;
}

#define CHECK(call) \
  if (const hipError_t error = (call)) return error

extern "C" {

// Host code reads one word of a pinned page after each of `times` kernels that write `count` of
// them, and then writes `own` itself.
int poll(int times, int count, int own) {
  unsigned* pinned;
  CHECK(hipHostMalloc(&pinned, kPage));
  for (int i = 0; i < times; ++i) {
    write<<<1, 64>>>(pinned, i + 1, count);
    if (static_cast<volatile unsigned*>(pinned)[0] != i + 1u) return hipErrorUnknown;
    for (int word = 0; word < own; ++word) pinned[kWords - 1 - word] = i * word;
  }
  return hipHostFree(pinned);
}

// The same with a new page each time.
int poll_new(int times) {
  for (int i = 0; i < times; ++i) {
    const int error = poll(1, 1, kWords);
    if (error != 0) return error;
  }
  return hipSuccess;
}

// The same with more pages than are remembered.
int poll_pages(int pages, int times) {
  unsigned* pinned;
  CHECK(hipHostMalloc(&pinned, pages * kPage));
  for (int i = 0; i < times; ++i) {
    write<<<1, 1>>>(pinned, i + 1, 1);
    for (int page = 0; page < pages; ++page) {
      (void)static_cast<volatile unsigned*>(pinned)[page * kWords];
    }
  }
  return hipSuccess;
}

}
