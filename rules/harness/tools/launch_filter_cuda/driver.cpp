// The filter's view of CUDA's driver, and lookups of functions by name.
#include <string.h>

#include "../launch_filter/filter.h"
#include "../launch_filter/real.h"
#include "functions.h"

namespace {

constexpr uint64_t kPerThread = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

#define ROW(name, arguments) {#name, reinterpret_cast<void*>(&name)},
const Wrapped kWrapped[] = {FUNCTIONS(ROW)};

// Functions that one name stands for, by the version of the interface.
struct Variant {
  const char* symbol;
  int since;
  bool per_thread;
  void* own;
};
#define VARIANT(symbol, since, per_thread, name) \
  {#symbol, since, per_thread, reinterpret_cast<void*>(&name)}
// The newest last.
const Variant kVariants[] = {
    VARIANT(cuGetProcAddress, 0, false, cuGetProcAddress),
    VARIANT(cuGetProcAddress, 12000, false, cuGetProcAddress_v2),
    VARIANT(cuLaunchKernel, 0, true, cuLaunchKernel_ptsz),
    VARIANT(cuLaunchKernelEx, 0, true, cuLaunchKernelEx_ptsz),
    VARIANT(cuLaunchCooperativeKernel, 0, true, cuLaunchCooperativeKernel_ptsz),
    VARIANT(cuGraphLaunch, 0, true, cuGraphLaunch_ptsz),
    VARIANT(cuGraphAddKernelNode, 12000, false, cuGraphAddKernelNode_v2),
    VARIANT(cuGraphAddNode, 12030, false, cuGraphAddNode_v2),
    VARIANT(cuGraphKernelNodeSetParams, 12000, false, cuGraphKernelNodeSetParams_v2),
    VARIANT(cuGraphExecKernelNodeSetParams, 12000, false, cuGraphExecKernelNodeSetParams_v2),
};

const char* const kHarmless[] = {"cuLaunchHostFunc", "cuGraphKernelNodeCopyAttributes",
                                 "cuGraphKernelNodeSetAttribute", "cuGraphKernelNodeGet"};

bool begins(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

// Whether a function that this library does not wrap could launch a kernel, judging by its name.
bool launches(const char* name) {
  for (const char* harmless : kHarmless) {
    if (begins(name, harmless)) return false;
  }
  return strstr(name, "Launch") != nullptr || begins(name, "cuGraphAddNode") ||
         begins(name, "cuGraphNodeSetParams") || begins(name, "cuGraphExecNodeSetParams") ||
         (begins(name, "cuGraph") && strstr(name, "Kernel") != nullptr);
}

Result refused() { return kNotPermitted; }

const char* name_of(const void* kernel) {
  using Ask = Result (*)(const char**, const void*);
  static const auto of_function = reinterpret_cast<Ask>(real_function("cuFuncGetName"));
  static const auto of_kernel = reinterpret_cast<Ask>(real_function("cuKernelGetName"));
  const char* name = nullptr;
  if (of_function != nullptr && of_function(&name, kernel) == kSuccess) return name;
  if (of_kernel != nullptr && of_kernel(&name, kernel) == kSuccess) return name;
  return nullptr;
}

Home home_of(const void* kernel) {
  using Ask = Result (*)(Home*, const void*);
  static const auto of_kernel = reinterpret_cast<Ask>(real_function("cuKernelGetLibrary"));
  static const auto of_function = reinterpret_cast<Ask>(real_function("cuFuncGetModule"));
  Home home = nullptr;
  if (of_kernel != nullptr && of_kernel(&home, kernel) == kSuccess) return home;
  if (of_function != nullptr && of_function(&home, kernel) == kSuccess) return home;
  return nullptr;
}

Owner owner_of_kernel(const void* kernel) { return owner_of(home_of(kernel)); }

__attribute__((constructor)) void begin() { stand_before(g_real); }

void* stand_in(const char* symbol, void* real, int version, uint64_t flags) {
  if (void* own = stand_in_for_address(real)) return own;
  const bool per_thread = (flags & kPerThread) != 0;
  void* own = stand_in_for_name(symbol);
  for (const Variant& variant : kVariants) {
    const bool fits = strcmp(variant.symbol, symbol) == 0 && version >= variant.since;
    if (fits && (per_thread || !variant.per_thread)) own = variant.own;
  }
  return own != nullptr ? own : refusal_of(symbol);
}

}  // namespace

void* g_real[kCount];

const Driver kDriver = {
    kWrapped, kCount,   g_real, launches, reinterpret_cast<void*>(&refused), name_of,
    owner_of_kernel, unwrapped, fat_size, "/torch/lib/libtorch_cuda.so"};

WRAP(cuGetProcAddress)(const char* symbol, void** found, int version, uint64_t flags) {
  const Result result = REAL(cuGetProcAddress, symbol, found, version, flags);
  if (result == kSuccess && found != nullptr && *found != nullptr) {
    if (void* own = stand_in(symbol, *found, version, flags)) *found = own;
  }
  return result;
}

WRAP(cuGetProcAddress_v2)
(const char* symbol, void** found, int version, uint64_t flags, int* status) {
  const Result result = REAL(cuGetProcAddress_v2, symbol, found, version, flags, status);
  if (result == kSuccess && found != nullptr && *found != nullptr) {
    if (void* own = stand_in(symbol, *found, version, flags)) *found = own;
  }
  return result;
}
