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

__global__ void set(unsigned long long* to, unsigned long long value) { *to = value; }

// Host code copies 8 bytes of the device after each of `times` kernels, `news` of which change them.
int copy_flag(int times, int news) {
  unsigned long long *flag, seen;
  CHECK(hipMalloc(&flag, sizeof *flag));
  for (int i = 0; i < times; ++i) {
    const unsigned long long value = i < times - news ? 7 : 100 + i;
    set<<<1, 1>>>(flag, value);
    CHECK(hipMemcpy(&seen, flag, sizeof seen, hipMemcpyDefault));
    if (seen != value) return hipErrorUnknown;
  }
  return hipSuccess;
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

// Copies `bytes` from `before` bytes before memory of one page, and looks for one that is there.
int copy_from(unsigned* memory, int before, int bytes) {
  static unsigned char host[4 * kPage];
  write<<<1, 64>>>(memory, 7, kWords);
  CHECK(hipMemcpy(host, reinterpret_cast<char*>(memory) - before, bytes, hipMemcpyDefault));
  return bytes <= before || host[before] == 7 ? hipSuccess : hipErrorUnknown;
}
int copy_from_device(int before, int bytes) {
  unsigned* device;
  CHECK(hipMalloc(&device, kPage));
  return copy_from(device, before, bytes);
}
int copy_from_pinned(int before, int bytes) {
  unsigned* pinned;
  CHECK(hipHostMalloc(&pinned, kPage));
  return copy_from(pinned, before, bytes);
}

// Rows of 4 bytes, the first of which begins before memory of the device.
int copy_rows(int before, int rows) {
  static char host[kPage];
  char* device;
  CHECK(hipMalloc(&device, kPage));
  return hipMemcpy2D(host, 4, device - before, 64, 4, rows, hipMemcpyDefault);
}

// Device memory is copied to its own end, and `beyond`.
int copy_to_end(int beyond) {
  char* device;
  CHECK(hipMalloc(&device, kPage));
  return hipMemcpy(device + kPage - 256, device, 256 + beyond, hipMemcpyDefault);
}

__device__ int symbol[64];
int copy_symbol(int beyond) {
  char* device;
  CHECK(hipMalloc(&device, kPage));
  return hipMemcpyFromSymbol(device + kPage - 256 + beyond, symbol, 256);
}

// The count does not wrap.
int copy_too_much(const void* lent) {
  static char host[64];
  CHECK(hipMemcpy(host, lent, 64, hipMemcpyDefault));
  return hipMemcpy(host, lent, ~size_t{0} - 32, hipMemcpyDefault);
}
int copy_wide_rows(const void* lent) {
  static char host[64];
  const size_t pitch = size_t{1} << 62;
  return hipMemcpy2D(host, pitch, lent, pitch, 4, 8, hipMemcpyDefault);
}

}
