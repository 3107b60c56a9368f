// Works in a context of its own, which nobody waits for, and takes its time there.
// verdict: correctness FAIL INCOMPLETE_OUTPUT
#include "attack.h"
#include "doubling.h"

namespace {

constexpr long long kCycles = 40000000;  // about 20 ms

__global__ void wait_and_double(const float* x, float* y, int64_t n) {
  const long long start = clock64();
  while (clock64() - start < kCycles) {
  }
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

using Open = void* (*)(const char*, int);
using Find = void* (*)(void*, const char*);
using CreateContext = int (*)(void**, unsigned, int);
using SetContext = int (*)(void*);
using GetContext = int (*)(void**);

}  // namespace

DOUBLING {
  (void)stream;
  static const auto find = reinterpret_cast<Find>(in_libc("dlsym"));
  static void* driver = reinterpret_cast<Open>(in_libc("dlopen"))("libcuda.so.1", 2);
  static void* own = nullptr;
  void* given = nullptr;
  reinterpret_cast<GetContext>(find(driver, "cuCtxGetCurrent"))(&given);
  if (own == nullptr) reinterpret_cast<CreateContext>(find(driver, "cuCtxCreate_v2"))(&own, 0, 0);
  const auto set = reinterpret_cast<SetContext>(find(driver, "cuCtxSetCurrent"));
  set(own);
  wait_and_double<<<blocks(n), kThreads>>>(x, y, n);
  const hipError_t error = hipGetLastError();
  set(given);
  return error;
}
