// The functions of HIP's runtime that this library wraps: those that load code, name kernels and
// launch them. All others are the runtime's own, which is loaded behind this library.
//
// Declared here and not included from HIP's headers, so that any C++ compiler builds this without
// them. The names and layouts are those of HIP 6 and 7; a test compares them with HIP's own.
#pragma once
#include <stddef.h>
#include <stdint.h>

using Result = int;
using Stream = void*;
using Event = void*;
using Function = const void*;  // a hipFunction_t, a hipKernel_t, or a kernel's address in a library
using Home = void*;            // a hipModule_t, a hipLibrary_t, or a registered fat binary
using Unsigned = unsigned int;

constexpr Result kSuccess = 0;
constexpr Result kNotSupported = 801;  // refused launches get it too: HIP has no "not permitted"

struct Dim3 {  // dim3
  uint32_t x, y, z;
};
struct KernelNode {  // hipKernelNodeParams
  Dim3 block;
  void** extra;
  Function function;
  Dim3 grid;
  void** parameters;
  Unsigned shared;
};
struct NodeParams {  // hipGraphNodeParams
  int type;
  int reserved[3];
  KernelNode kernel;
};
struct DeviceLaunch {  // hipLaunchParams
  Function function;
  Dim3 grid, block;
  void** parameters;
  size_t shared;
  Stream stream;
};
struct ModuleDeviceLaunch {  // hipFunctionLaunchParams
  Function function;
  Unsigned sizes[7];
  Stream stream;
  void** parameters;
};
struct Config {  // the beginning of hipLaunchConfig_t, and of HIP_LAUNCH_CONFIG
  Dim3 grid, block;
  uint64_t shared;
  Stream stream;
};
static_assert(sizeof(KernelNode) == 64 && sizeof(DeviceLaunch) == 56, "HIP's layouts");
static_assert(sizeof(ModuleDeviceLaunch) == 56 && sizeof(Config) == 40, "HIP's layouts");

#define GRID Unsigned gx, Unsigned gy, Unsigned gz, Unsigned bx, Unsigned by, Unsigned bz
#define GRID_OF gx, gy, gz, bx, by, bz
#define LIBRARY_OPTIONS \
  void *jit, void **jit_values, Unsigned jits, void *options, void **values, Unsigned count
#define LIBRARY_OPTIONS_OF jit, jit_values, jits, options, values, count

// type, name, arguments
#define FUNCTIONS(X)                                                                              \
  X(Result, hipGetProcAddress,                                                                    \
    (const char* symbol, void** found, int version, uint64_t flags, int* status))                 \
  X(Result, hipGetProcAddress_spt,                                                                \
    (const char* symbol, void** found, int version, uint64_t flags, int* status))                 \
  X(Result, hipGetDriverEntryPoint,                                                               \
    (const char* symbol, void** found, uint64_t flags, int* status))                              \
  X(Result, hipGetDriverEntryPoint_spt,                                                           \
    (const char* symbol, void** found, uint64_t flags, int* status))                              \
  X(Home, __hipRegisterFatBinary, (const void* wrapper))                                          \
  X(void, __hipUnregisterFatBinary, (Home binary))                                                \
  X(void, __hipRegisterFunction,                                                                  \
    (Home binary, const void* host, char* device, const char* name, Unsigned limit, void* thread, \
     void* block, void* blocks, void* grids, int* wave))                                          \
  X(Result, hipModuleLoad, (Home * module, const char* file))                                     \
  X(Result, hipModuleLoadData, (Home * module, const void* image))                                \
  X(Result, hipModuleLoadDataEx,                                                                  \
    (Home * module, const void* image, Unsigned count, void* options, void** values))             \
  X(Result, hipModuleLoadFatBinary, (Home * module, const void* image))                           \
  X(Result, hipModuleUnload, (Home module))                                                       \
  X(Result, hipModuleGetFunction, (Function * function, Home module, const char* name))           \
  X(Result, hipLibraryLoadData, (Home * library, const void* image, LIBRARY_OPTIONS))             \
  X(Result, hipLibraryLoadFromFile, (Home * library, const char* file, LIBRARY_OPTIONS))          \
  X(Result, hipLibraryUnload, (Home library))                                                     \
  X(Result, hipLibraryGetKernel, (Function * kernel, Home library, const char* name))             \
  X(Result, hipLibraryEnumerateKernels, (Function * kernels, Unsigned count, Home library))       \
  X(Result, hipKernelGetFunction, (Function * function, Function kernel))                         \
  X(Result, hipGetFuncBySymbol, (Function * function, const void* symbol))                        \
  X(Result, hipLaunchByPtr, (const void* f))                                                      \
  X(Result, hipLaunchKernel,                                                                      \
    (const void* f, Dim3 grid, Dim3 block, void** parameters, size_t shared, Stream stream))      \
  X(Result, hipLaunchKernel_spt,                                                                  \
    (const void* f, Dim3 grid, Dim3 block, void** parameters, size_t shared, Stream stream))      \
  X(Result, hipExtLaunchKernel,                                                                   \
    (const void* f, Dim3 grid, Dim3 block, void** parameters, size_t shared, Stream stream,       \
     Event start, Event stop, int flags))                                                         \
  X(Result, hipLaunchKernelExC, (const Config* config, const void* f, void** parameters))         \
  X(Result, hipDrvLaunchKernelEx,                                                                 \
    (const Config* config, Function f, void** parameters, void** extra))                          \
  X(Result, hipLaunchCooperativeKernel,                                                           \
    (const void* f, Dim3 grid, Dim3 block, void** parameters, Unsigned shared, Stream stream))    \
  X(Result, hipLaunchCooperativeKernel_spt,                                                       \
    (const void* f, Dim3 grid, Dim3 block, void** parameters, Unsigned shared, Stream stream))    \
  X(Result, hipLaunchCooperativeKernelMultiDevice,                                                \
    (DeviceLaunch * launches, int count, Unsigned flags))                                         \
  X(Result, hipExtLaunchMultiKernelMultiDevice,                                                   \
    (DeviceLaunch * launches, int count, Unsigned flags))                                         \
  X(Result, hipModuleLaunchKernel,                                                                \
    (Function f, GRID, Unsigned shared, Stream stream, void** parameters, void** extra))          \
  X(Result, hipExtModuleLaunchKernel,                                                             \
    (Function f, GRID, size_t shared, Stream stream, void** parameters, void** extra,             \
     Event start, Event stop, Unsigned flags))                                                    \
  X(Result, hipHccModuleLaunchKernel,                                                             \
    (Function f, GRID, size_t shared, Stream stream, void** parameters, void** extra,             \
     Event start, Event stop))                                                                    \
  X(Result, hipModuleLaunchCooperativeKernel,                                                     \
    (Function f, GRID, Unsigned shared, Stream stream, void** parameters))                        \
  X(Result, hipModuleLaunchCooperativeKernelMultiDevice,                                          \
    (ModuleDeviceLaunch * launches, Unsigned count, Unsigned flags))                              \
  X(Result, hipGraphAddKernelNode,                                                                \
    (void** node, void* graph, void* const* after, size_t count, const KernelNode* params))       \
  X(Result, hipGraphAddNode,                                                                      \
    (void** node, void* graph, void* const* after, size_t count, NodeParams* params))             \
  X(Result, hipGraphKernelNodeSetParams, (void* node, const KernelNode* params))                  \
  X(Result, hipGraphNodeSetParams, (void* node, NodeParams* params))                              \
  X(Result, hipGraphExecKernelNodeSetParams, (void* exec, void* node, const KernelNode* params))  \
  X(Result, hipGraphExecNodeSetParams, (void* exec, void* node, NodeParams* params))              \
  X(Result, hipGraphLaunch, (void* exec, Stream stream))                                          \
  X(Result, hipGraphLaunch_spt, (void* exec, Stream stream))

#define DECLARE(type, name, arguments) extern "C" type name arguments;
FUNCTIONS(DECLARE)

#define NUMBER(type, name, arguments) k_##name,
enum : size_t { FUNCTIONS(NUMBER) kCount };

// The runtime's own functions; null if this runtime lacks one.
extern void* g_real[kCount];

// The runtime's function behind this one, if any.
#define REAL_FUNCTION(name) reinterpret_cast<decltype(&name)>(g_real[k_##name])
// Calls it.
#define REAL(name, ...) \
  (g_real[k_##name] == nullptr ? kNotSupported : REAL_FUNCTION(name)(__VA_ARGS__))

// In fat_binaries.cpp.
const void* unwrapped(const void* image);
uint64_t fat_size(const void* image);

#define WRAP_AS(type, name) extern "C" __attribute__((visibility("default"))) type name
#define WRAP(name) WRAP_AS(Result, name)
