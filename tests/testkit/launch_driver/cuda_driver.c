// What the launch filter asks of CUDA's driver, without a device: modules, kernels by name, and a
// count of what has been launched.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
enum { INVALID_HANDLE = 400, NOT_FOUND = 500 };
enum { MODULE = 1, LIBRARY, FUNCTION, KERNEL };

typedef struct Object {
  int kind;
  struct Object* home;
  char name[512];
} Object;

static unsigned long launched;
static int capturing;

unsigned long double_launched(void) { return launched; }
void double_capture(int on) { capturing = on; }

static CUresult make(void** made, int kind, Object* home, const char* name) {
  Object* object = calloc(1, sizeof *object);
  object->kind = kind;
  object->home = home;
  snprintf(object->name, sizeof object->name, "%s", name);
  *made = object;
  return 0;
}

static CUresult launch(const Object* what) {
  if (what == NULL) return INVALID_HANDLE;
  launched++;
  return 0;
}

CUresult cuModuleLoadData(void** module, const void* image) { return make(module, MODULE, 0, ""); }
CUresult cuModuleUnload(Object* module) { return 0; }
CUresult cuModuleGetFunction(void** f, Object* module, const char* name) {
  return make(f, FUNCTION, module, name);
}
CUresult cuLibraryLoadData(void** library, const void* code, void* a, void* b, unsigned c, void* d,
                           void* e, unsigned f) {
  return make(library, LIBRARY, 0, "");
}
CUresult cuLibraryGetKernel(void** k, Object* library, const char* name) {
  return make(k, KERNEL, library, name);
}
CUresult cuKernelGetFunction(void** f, Object* kernel) {
  return make(f, FUNCTION, kernel->home, kernel->name);
}
CUresult cuFuncGetName(const char** name, Object* f) {
  *name = f->name;
  return f->kind == FUNCTION ? 0 : INVALID_HANDLE;
}
CUresult cuKernelGetName(const char** name, Object* k) {
  *name = k->name;
  return k->kind == KERNEL ? 0 : INVALID_HANDLE;
}
CUresult cuFuncGetModule(void** module, Object* f) {
  *module = f->home;
  return f->kind == FUNCTION ? 0 : INVALID_HANDLE;
}
CUresult cuKernelGetLibrary(void** library, Object* k) {
  *library = k->home;
  return k->kind == KERNEL ? 0 : INVALID_HANDLE;
}
CUresult cuStreamIsCapturing(void* stream, int* status) {
  *status = capturing;
  return 0;
}
CUresult cuLaunch(Object* f) { return launch(f); }
CUresult cuLaunchGrid(Object* f, int a, int b) { return launch(f); }
CUresult cuLaunchGridAsync(Object* f, int a, int b, void* s) { return launch(f); }
CUresult cuLaunchKernel(Object* f) { return launch(f); }
CUresult cuLaunchKernel_ptsz(Object* f) { return launch(f); }
CUresult cuLaunchKernelEx(void* config, Object* f) { return launch(f); }
CUresult cuLaunchKernelEx_ptsz(void* config, Object* f) { return launch(f); }
CUresult cuLaunchCooperativeKernel(Object* f) { return launch(f); }
CUresult cuLaunchCooperativeKernel_ptsz(Object* f) { return launch(f); }
CUresult cuLaunchCooperativeKernelMultiDevice(Object** f, unsigned n, unsigned flags) {
  return launch(*f);
}
CUresult cuGraphLaunch(Object* graph, void* stream) { return launch(graph); }
CUresult cuGraphLaunch_ptsz(Object* graph, void* stream) { return launch(graph); }

// What a driver of the future may have.
CUresult cuLaunchKernelSomehow(Object* f) { return launch(f); }
CUresult cuGraphAddNode_v9(Object* f) { return launch(f); }
CUresult cuFutureQuery(void) { return 77; }

CUresult cuGetProcAddress_v2(const char* symbol, void** found, int version,
                             unsigned long long flags, int* status) {
  char name[256];
  snprintf(name, sizeof name, "%s%s", symbol, flags & 2 ? "_ptsz" : "");
  *found = dlsym(dlopen("libkabuild-driver.so", RTLD_NOW | RTLD_NOLOAD), name);
  if (*found == NULL) *found = dlsym(dlopen("libkabuild-driver.so", RTLD_NOW | RTLD_NOLOAD), symbol);
  return *found ? 0 : NOT_FOUND;
}
CUresult cuGetProcAddress(const char* symbol, void** found, int version,
                          unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, found, version, flags, NULL);
}
