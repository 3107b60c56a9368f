#include "driver.h"

#include <dlfcn.h>

namespace cuda {
namespace {

Driver g_driver;
void* g_library;

struct Symbol {
  const char* name;
  void* slot;
};

// The versions of the interface whose arguments the header declares.
const Symbol kSymbols[] = {
    {"cuInit", &g_driver.init},
    {"cuDeviceGet", &g_driver.device_get},
    {"cuDevicePrimaryCtxRetain", &g_driver.context_retain},
    {"cuDevicePrimaryCtxSetFlags_v2", &g_driver.context_set_flags},
    {"cuCtxSetCurrent", &g_driver.context_set_current},
    {"cuCtxSynchronize", &g_driver.context_synchronize},
    {"cuStreamCreate", &g_driver.stream_create},
    {"cuEventCreate", &g_driver.event_create},
    {"cuEventRecord", &g_driver.event_record},
    {"cuEventSynchronize", &g_driver.event_synchronize},
    {"cuEventElapsedTime", &g_driver.event_elapsed},
    {"cuMemAlloc_v2", &g_driver.memory_allocate},
    {"cuMemcpyHtoD_v2", &g_driver.copy_to_device},
    {"cuMemImportFromShareableHandle", &g_driver.memory_import},
    {"cuMemRelease", &g_driver.memory_release},
    {"cuMemAddressReserve", &g_driver.address_reserve},
    {"cuMemAddressFree", &g_driver.address_free},
    {"cuMemMap", &g_driver.memory_map},
    {"cuMemUnmap", &g_driver.memory_unmap},
    {"cuMemSetAccess", &g_driver.memory_access},
    {"cuDeviceGetAttribute", &g_driver.device_attribute},
    {"cuMemHostRegister_v2", &g_driver.host_register},
    {"cuMemHostGetDevicePointer_v2", &g_driver.host_address},
    {"cuModuleLoadData", &g_driver.module_load},
    {"cuModuleGetFunction", &g_driver.module_function},
    {"cuLaunchKernel", &g_driver.launch},
    {"cuStreamBeginCapture_v2", &g_driver.capture_begin},
    {"cuStreamEndCapture", &g_driver.capture_end},
    {"cuGraphInstantiateWithFlags", &g_driver.graph_instantiate},
    {"cuGraphUpload", &g_driver.graph_upload},
    {"cuGraphLaunch", &g_driver.graph_launch},
    {"cuGraphExecDestroy", &g_driver.graph_exec_destroy},
    {"cuGraphDestroy", &g_driver.graph_destroy},
};

}  // namespace

const Driver& driver() { return g_driver; }

void* library() { return g_library; }

const char* load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  for (const Symbol& symbol : kSymbols) {
    void* function = dlsym(library, symbol.name);
    if (function == nullptr) return dlerror();
    *static_cast<void**>(symbol.slot) = function;
  }
  g_library = library;
  return nullptr;
}

}  // namespace cuda
