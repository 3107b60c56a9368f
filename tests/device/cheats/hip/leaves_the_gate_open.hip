// Leaves the gate's kernel out: its work is done before there are inputs.
// verdict: perf FAIL NON_FINITE
#include "gate.h"
#include "doubling.h"

namespace {

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void*, void**, void**);
Launch g_launch;

int without_the_blocker(void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                        unsigned b, unsigned c, unsigned shared, void* stream, void** arguments,
                        void** extra) {
  if (x > 1) return 0;
  return g_launch(function, x, y, z, threads, b, c, shared, stream, arguments, extra);
}

}  // namespace

DOUBLING {
  static bool patched = false;
  if (!patched) {
    g_launch = reinterpret_cast<Launch>(in_driver("cuLaunchKernel"));
    void** slot = slot_of(reinterpret_cast<void*>(g_launch));
    if (slot != nullptr) *slot = reinterpret_cast<void*>(&without_the_blocker);
  }
  patched = true;
  doubled<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  return hipGetLastError();
}
