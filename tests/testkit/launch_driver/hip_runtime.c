// What the launch filter asks of HIP's runtime, without a device: modules, libraries, what libraries
// register, and a count of what has been launched.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int hipError_t;
enum { INVALID_HANDLE = 400, NOT_FOUND = 500, MOST = 64 };

typedef struct {
  unsigned x, y, z;
} dim3;
typedef struct Object {
  char name[512];
} Object;

static unsigned long launched;
static int capturing;
static const void* places[MOST];
static const char* registered[MOST];
static int in_use;

unsigned long double_launched(void) { return launched; }
void double_capture(int on) { capturing = on; }

static hipError_t make(void** made, const char* name) {
  Object* object = calloc(1, sizeof *object);
  snprintf(object->name, sizeof object->name, "%s", name);
  *made = object;
  return 0;
}

static hipError_t launch(const void* what) {
  if (what == NULL) return INVALID_HANDLE;
  launched++;
  return 0;
}

void** __hipRegisterFatBinary(const void* wrapper) {
  void* made;
  make(&made, "");
  return made;
}
void __hipUnregisterFatBinary(void** binary) {}
void __hipRegisterFunction(void** binary, const void* host, char* device, const char* name,
                           unsigned limit, void* a, void* b, void* c, void* d, int* e) {
  places[in_use] = host;
  registered[in_use++] = name;
}
const char* hipKernelNameRefByPtr(const void* host, void* stream) {
  for (int i = 0; i < in_use; ++i)
    if (places[i] == host) return registered[i];
  return NULL;
}
hipError_t hipModuleLoad(void** module, const char* file) { return make(module, ""); }
hipError_t hipModuleLoadData(void** module, const void* image) { return make(module, ""); }
hipError_t hipModuleLoadDataEx(void** module, const void* image, unsigned n, void* a, void** b) {
  return make(module, "");
}
hipError_t hipModuleGetFunction(void** f, Object* module, const char* name) {
  return make(f, name);
}
hipError_t hipLibraryLoadData(void** library, const void* code, void* a, void** b, unsigned c,
                              void* d, void** e, unsigned f) {
  return make(library, "");
}
hipError_t hipLibraryGetKernel(void** k, Object* library, const char* name) {
  return make(k, name);
}
hipError_t hipLibraryEnumerateKernels(void** k, unsigned n, Object* library) {
  return make(k, "");
}
hipError_t hipKernelGetFunction(void** f, Object* kernel) { return make(f, kernel->name); }
hipError_t hipGetFuncBySymbol(void** f, const void* symbol) { return make(f, ""); }
hipError_t hipStreamIsCapturing(void* stream, int* status) {
  *status = capturing;
  return 0;
}
hipError_t hipLaunchByPtr(const void* f) { return launch(f); }
hipError_t hipLaunchKernel(const void* f, dim3 grid) { return launch(f); }
hipError_t hipLaunchKernel_spt(const void* f, dim3 grid) { return launch(f); }
hipError_t hipExtLaunchKernel(const void* f, dim3 grid) { return launch(f); }
hipError_t hipLaunchKernelExC(void* config, const void* f) { return launch(f); }
hipError_t hipDrvLaunchKernelEx(void* config, const void* f) { return launch(f); }
hipError_t hipLaunchCooperativeKernel(const void* f, dim3 grid) { return launch(f); }
hipError_t hipLaunchCooperativeKernel_spt(const void* f, dim3 grid) { return launch(f); }
hipError_t hipLaunchCooperativeKernelMultiDevice(void** f, int n, unsigned flags) {
  return launch(*f);
}
hipError_t hipExtLaunchMultiKernelMultiDevice(void** f, int n, unsigned flags) {
  return launch(*f);
}
hipError_t hipModuleLaunchKernel(const void* f) { return launch(f); }
hipError_t hipExtModuleLaunchKernel(const void* f) { return launch(f); }
hipError_t hipHccModuleLaunchKernel(const void* f) { return launch(f); }
hipError_t hipModuleLaunchCooperativeKernel(const void* f) { return launch(f); }
hipError_t hipModuleLaunchCooperativeKernelMultiDevice(void** f, unsigned n, unsigned flags) {
  return launch(*f);
}
hipError_t hipGraphLaunch(void* graph, void* stream) { return launch(graph); }
hipError_t hipGraphLaunch_spt(void* graph, void* stream) { return launch(graph); }

// What a runtime of the future may have, and C++ names of this one's.
hipError_t hipLaunchKernelSomehow(void* f) { return launch(f); }
hipError_t hipGraphAddNode_v9(void* f) { return launch(f); }
hipError_t _Z24hipExtModuleLaunchKernelPv(void* f) { return launch(f); }
hipError_t hipFutureQuery(void) { return 77; }

// The addresses that this library itself has, whatever its table of symbols says since.
#define ASKED(X)                                                                                 \
  X(hipLaunchKernel) X(hipLaunchKernel_spt) X(hipModuleLaunchKernel) X(hipModuleLoadDataEx)      \
  X(hipGraphLaunch) X(hipGraphLaunch_spt) X(hipLaunchKernelSomehow) X(hipGraphAddNode_v9)        \
  X(hipFutureQuery) X(hipLaunchCooperativeKernel_spt)
static hipError_t find(const char* symbol, void** found, unsigned long long flags) {
  char name[256];
  snprintf(name, sizeof name, "%s%s", symbol, flags & 2 ? "_spt" : "");
#define FIND(known) \
  if (strcmp(name, #known) == 0 || (*found == NULL && strcmp(symbol, #known) == 0)) *found = known;
  *found = NULL;
  ASKED(FIND)
  return *found ? 0 : NOT_FOUND;
}
hipError_t hipGetProcAddress(const char* symbol, void** found, int version,
                             unsigned long long flags, int* status) {
  return find(symbol, found, flags);
}
hipError_t hipGetProcAddress_spt(const char* symbol, void** found, int version,
                                 unsigned long long flags, int* status) {
  return find(symbol, found, flags | 2);
}
hipError_t hipGetDriverEntryPoint(const char* symbol, void** found, unsigned long long flags,
                                  int* status) {
  return find(symbol, found, flags);
}
hipError_t hipGetDriverEntryPoint_spt(const char* symbol, void** found, unsigned long long flags,
                                      int* status) {
  return find(symbol, found, flags | 2);
}
