// Patches the code that the kernel maps for reading the clock (vDSO).
// verdict: perf REJECTED CLOCK_MISMATCH, by the judge's clock
// twin: reads_the_clock
#include "softmax.h"
#include "attack.h"

ENTRY {
  static bool patched;
  if (!patched) {
    patched = true;
    const Image vdso = image_at(auxiliary(AT_SYSINFO_EHDR));
#if defined(__x86_64__)
    void* function = symbol_in(vdso, "__vdso_clock_gettime");
#else
    void* function = symbol_in(vdso, "__kernel_clock_gettime");
#endif
    if (function == nullptr) return hipErrorNotFound;
    detour(function, reinterpret_cast<void*>(&slow_clock));
  }
  return honest(x, y, scale, rows, cols, stream);
}
