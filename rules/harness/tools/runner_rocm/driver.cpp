// HIP's functions for AMD, in place of CUDA's. They take the same arguments with the same values
// and layouts, so the runner's clock and memory code works with both. One differs: before HIP 7.1,
// a file descriptor is passed by its address.
//
// Built and started without a device; never run on one.
#include "../runner_cuda/driver.h"

#include <dlfcn.h>

namespace cuda {
namespace {

constexpr int kDescriptorsByValue = 70100000;  // HIP 7.1

Driver g_driver;
void* g_library;
int (*g_runtime_version)(int*);
int (*g_memory_import)(Handle*, void*, int);

int import_memory(Handle* handle, void* descriptor, int type) {
  int version = 0;
  const int error = g_runtime_version(&version);
  if (error != kSuccess) return error;
  int number = static_cast<int>(reinterpret_cast<uintptr_t>(descriptor));
  return g_memory_import(handle, version < kDescriptorsByValue ? &number : descriptor, type);
}

struct Symbol {
  const char* name;
  void* slot;
};

const Symbol kSymbols[] = {
    {"hipInit", &g_driver.init},
    {"hipDeviceGet", &g_driver.device_get},
    {"hipDevicePrimaryCtxRetain", &g_driver.context_retain},
    {"hipDevicePrimaryCtxSetFlags", &g_driver.context_set_flags},
    {"hipCtxSetCurrent", &g_driver.context_set_current},
    {"hipDeviceSynchronize", &g_driver.context_synchronize},
    {"hipStreamCreateWithFlags", &g_driver.stream_create},
    {"hipEventCreateWithFlags", &g_driver.event_create},
    {"hipEventRecord", &g_driver.event_record},
    {"hipEventSynchronize", &g_driver.event_synchronize},
    {"hipEventElapsedTime", &g_driver.event_elapsed},
    {"hipRuntimeGetVersion", &g_runtime_version},
    {"hipMalloc", &g_driver.memory_allocate},
    {"hipMemcpyHtoD", &g_driver.copy_to_device},
    {"hipMemImportFromShareableHandle", &g_memory_import},
    {"hipMemRelease", &g_driver.memory_release},
    {"hipMemAddressReserve", &g_driver.address_reserve},
    {"hipMemAddressFree", &g_driver.address_free},
    {"hipMemMap", &g_driver.memory_map},
    {"hipMemUnmap", &g_driver.memory_unmap},
    {"hipMemSetAccess", &g_driver.memory_access},
    {"hipStreamBeginCapture", &g_driver.capture_begin},
    {"hipStreamEndCapture", &g_driver.capture_end},
    {"hipGraphInstantiateWithFlags", &g_driver.graph_instantiate},
    {"hipGraphUpload", &g_driver.graph_upload},
    {"hipGraphLaunch", &g_driver.graph_launch},
    {"hipGraphExecDestroy", &g_driver.graph_exec_destroy},
    {"hipGraphDestroy", &g_driver.graph_destroy},
};

// Newest first. Only development packages install the name without a number.
const char* const kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"};

}  // namespace

const Driver& driver() { return g_driver; }

void* library() { return g_library; }

const char* load() {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    // Global, so that a candidate's library finds HIP's symbols here.
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  }
  if (library == nullptr) return dlerror();
  for (const Symbol& symbol : kSymbols) {
    void* function = dlsym(library, symbol.name);
    if (function == nullptr) return dlerror();
    *static_cast<void**>(symbol.slot) = function;
  }
  g_driver.memory_import = import_memory;
  g_library = library;
  return nullptr;
}

}  // namespace cuda
