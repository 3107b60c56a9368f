// Rewrites the driver's function that reads events: every batch takes a millisecond.
// verdict: perf PASS, gains nothing
#include "attack.h"
#include "doubling.h"

namespace {

int one_millisecond(float* elapsed, void*, void*) {
  *elapsed = 1.0f;
  return 0;
}

using Open = void* (*)(const char*, int);
using Find = void* (*)(void*, const char*);

void patch() {
  void* driver = reinterpret_cast<Open>(in_libc("dlopen"))("libcuda.so.1", 2);
  void* read = reinterpret_cast<Find>(in_libc("dlsym"))(driver, "cuEventElapsedTime");
  detour(read, reinterpret_cast<void*>(&one_millisecond));
}

}  // namespace

DOUBLING {
  static bool patched = false;
  if (!patched) patch();
  patched = true;
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  return hipGetLastError();
}
