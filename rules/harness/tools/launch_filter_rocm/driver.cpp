// The filter's view of HIP's runtime, and lookups of functions by name.
#include <string.h>

#include "../launch_filter/filter.h"
#include "../launch_filter/images.h"
#include "../launch_filter/real.h"
#include "functions.h"

namespace {

constexpr uint64_t kPerThread = 2;  // HIP_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
constexpr char kPerThreadEnd[] = "_spt";

#define ROW(type, name, arguments) {#name, reinterpret_cast<void*>(&name)},
const Wrapped kWrapped[] = {FUNCTIONS(ROW)};

const char* const kHarmless[] = {"hipLaunchHostFunc", "hipGraphKernelNodeCopyAttributes",
                                 "hipGraphKernelNodeSetAttribute", "hipGraphKernelNodeGet"};

bool begins(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

// Whether a function that this library does not wrap could launch a kernel, or return a function
// that does, judging by its name. Some names are mangled C++ names.
bool launches(const char* name) {
  for (const char* harmless : kHarmless) {
    if (begins(name, harmless)) return false;
  }
  return strstr(name, "Launch") != nullptr || strstr(name, "GetProcAddress") != nullptr ||
         strstr(name, "DriverEntryPoint") != nullptr || begins(name, "hipGraphAddNode") ||
         begins(name, "hipGraphNodeSetParams") || begins(name, "hipGraphExecNodeSetParams") ||
         (strstr(name, "Graph") != nullptr && strstr(name, "KernelNode") != nullptr);
}

Result refused() { return kNotSupported; }

// The name of a kernel in a library; null for any other handle.
const char* registered_name(const void* kernel) {
  using Ask = const char* (*)(const void*, Stream);
  static const auto ask = reinterpret_cast<Ask>(real_function("hipKernelNameRefByPtr"));
  return ask == nullptr ? nullptr : ask(kernel, nullptr);
}

// The runtime is not asked about a module's kernel: it would misread the handle as its own.
const char* name_of(const void* kernel) {
  const char* name = noted_name(kernel);
  return name != nullptr ? name : registered_name(kernel);
}

// PyTorch's kernels are in its library, and are registered before the filter is in force.
Owner owner_of_kernel(const void* kernel) {
  return in_pytorch(kernel) && registered_name(kernel) != nullptr ? kPyTorch : kForeign;
}

bool is_own(const void* function) {
  for (const Wrapped& wrapped : kWrapped) {
    if (wrapped.own == function) return true;
  }
  return function == kDriver.refuse;
}

// Replaces the function that the runtime has found with this library's.
void stand_in(const char* symbol, void** found, uint64_t flags, bool per_thread) {
  if (found == nullptr || *found == nullptr || is_own(*found)) return;
  void* own = stand_in_for_address(*found);
  char name[128];
  const size_t length = strlen(symbol);
  if (own == nullptr && (per_thread || (flags & kPerThread) != 0) &&
      length + sizeof kPerThreadEnd <= sizeof name) {
    memcpy(name, symbol, length);
    memcpy(name + length, kPerThreadEnd, sizeof kPerThreadEnd);
    own = stand_in_for_name(name);
  }
  if (own == nullptr) own = stand_in_for_name(symbol);
  if (own == nullptr) own = refusal_of(symbol);
  if (own != nullptr) *found = own;
}

__attribute__((constructor)) void begin() { stand_before(g_real); }

}  // namespace

void* g_real[kCount];

const Driver kDriver = {
    kWrapped,        kCount,    g_real,   launches, reinterpret_cast<void*>(&refused), name_of,
    owner_of_kernel, unwrapped, fat_size, "/torch/lib/libtorch_hip.so"};

WRAP(hipGetProcAddress)
(const char* symbol, void** found, int version, uint64_t flags, int* status) {
  const Result result = REAL(hipGetProcAddress, symbol, found, version, flags, status);
  if (result == kSuccess) stand_in(symbol, found, flags, false);
  return result;
}

WRAP(hipGetProcAddress_spt)
(const char* symbol, void** found, int version, uint64_t flags, int* status) {
  const Result result = REAL(hipGetProcAddress_spt, symbol, found, version, flags, status);
  if (result == kSuccess) stand_in(symbol, found, flags, true);
  return result;
}

WRAP(hipGetDriverEntryPoint)(const char* symbol, void** found, uint64_t flags, int* status) {
  const Result result = REAL(hipGetDriverEntryPoint, symbol, found, flags, status);
  if (result == kSuccess) stand_in(symbol, found, flags, false);
  return result;
}

WRAP(hipGetDriverEntryPoint_spt)(const char* symbol, void** found, uint64_t flags, int* status) {
  const Result result = REAL(hipGetDriverEntryPoint_spt, symbol, found, flags, status);
  if (result == kSuccess) stand_in(symbol, found, flags, true);
  return result;
}
