// The functions of CUDA's driver that this library wraps: those that load code, name kernels and
// launch them. All others are the driver's own, which is loaded behind this library.
//
// Declared here and not included from cuda.h, so that any C++ compiler builds this. The names and
// layouts are the driver's stable binary interface.
#pragma once
#include <stddef.h>
#include <stdint.h>

using Result = int;
using Stream = void*;
using Function = const void*;  // a CUfunction or a CUkernel
using Home = void*;            // a CUmodule or a CUlibrary
using Unsigned = unsigned int;

constexpr Result kSuccess = 0;
constexpr Result kNotPermitted = 800;
constexpr Result kNotSupported = 801;

// CUDA_KERNEL_NODE_PARAMS: the second version appends `kernel`, used if `function` is null.
struct FirstKernelNode {
  Function function;
  Unsigned sizes[7];
  void** parameters;
  void** extra;
};
struct KernelNode {
  FirstKernelNode first;
  Function kernel;
  void* context;
};
struct NodeParams {  // CUgraphNodeParams
  int type;
  int reserved[3];
  KernelNode kernel;
};
static_assert(sizeof(FirstKernelNode) == 56 && sizeof(KernelNode) == 72, "CUDA's layouts");

struct DeviceLaunch {  // CUDA_LAUNCH_PARAMS
  Function function;
  Unsigned sizes[7];
  Stream stream;
  void** parameters;
};

#define GRID Unsigned gx, Unsigned gy, Unsigned gz, Unsigned bx, Unsigned by, Unsigned bz
#define GRID_OF gx, gy, gz, bx, by, bz
#define LIBRARY_OPTIONS \
  void *jit, void **jit_values, Unsigned jits, void *options, void **values, Unsigned count
#define LIBRARY_OPTIONS_OF jit, jit_values, jits, options, values, count

// name, arguments
#define FUNCTIONS(X)                                                                             \
  X(cuGetProcAddress, (const char* symbol, void** found, int version, uint64_t flags))           \
  X(cuGetProcAddress_v2,                                                                         \
    (const char* symbol, void** found, int version, uint64_t flags, int* status))                \
  X(cuModuleLoad, (Home * module, const char* file))                                             \
  X(cuModuleLoadData, (Home * module, const void* image))                                        \
  X(cuModuleLoadDataEx,                                                                          \
    (Home * module, const void* image, Unsigned count, void* options, void** values))            \
  X(cuModuleLoadFatBinary, (Home * module, const void* image))                                   \
  X(cuModuleUnload, (Home module))                                                               \
  X(cuModuleGetFunction, (Function * function, Home module, const char* name))                   \
  X(cuModuleEnumerateFunctions, (Function * functions, Unsigned count, Home module))             \
  X(cuLibraryLoadData, (Home * library, const void* image, LIBRARY_OPTIONS))                     \
  X(cuLibraryLoadFromFile, (Home * library, const char* file, LIBRARY_OPTIONS))                  \
  X(cuLibraryUnload, (Home library))                                                             \
  X(cuLibraryGetKernel, (Function * kernel, Home library, const char* name))                     \
  X(cuLibraryEnumerateKernels, (Function * kernels, Unsigned count, Home library))               \
  X(cuLibraryGetModule, (Home * module, Home library))                                           \
  X(cuKernelGetFunction, (Function * function, Function kernel))                                 \
  X(cuLaunch, (Function f))                                                                      \
  X(cuLaunchGrid, (Function f, int width, int height))                                           \
  X(cuLaunchGridAsync, (Function f, int width, int height, Stream stream))                       \
  X(cuLaunchKernel,                                                                              \
    (Function f, GRID, Unsigned shared, Stream stream, void** parameters, void** extra))         \
  X(cuLaunchKernel_ptsz,                                                                         \
    (Function f, GRID, Unsigned shared, Stream stream, void** parameters, void** extra))         \
  X(cuLaunchKernelEx, (const void* config, Function f, void** parameters, void** extra))         \
  X(cuLaunchKernelEx_ptsz, (const void* config, Function f, void** parameters, void** extra))    \
  X(cuLaunchCooperativeKernel,                                                                   \
    (Function f, GRID, Unsigned shared, Stream stream, void** parameters))                       \
  X(cuLaunchCooperativeKernel_ptsz,                                                              \
    (Function f, GRID, Unsigned shared, Stream stream, void** parameters))                       \
  X(cuLaunchCooperativeKernelMultiDevice,                                                        \
    (DeviceLaunch * launches, Unsigned count, Unsigned flags))                                   \
  X(cuGraphAddKernelNode,                                                                        \
    (void** node, void* graph, void* const* after, size_t count, const FirstKernelNode* params)) \
  X(cuGraphAddKernelNode_v2,                                                                     \
    (void** node, void* graph, void* const* after, size_t count, const KernelNode* params))      \
  X(cuGraphAddNode,                                                                              \
    (void** node, void* graph, void* const* after, size_t count, NodeParams* params))            \
  X(cuGraphAddNode_v2, (void** node, void* graph, void* const* after, const void* edges,         \
                        size_t count, NodeParams* params))                                       \
  X(cuGraphKernelNodeSetParams, (void* node, const FirstKernelNode* params))                     \
  X(cuGraphKernelNodeSetParams_v2, (void* node, const KernelNode* params))                       \
  X(cuGraphNodeSetParams, (void* node, NodeParams* params))                                      \
  X(cuGraphExecKernelNodeSetParams, (void* exec, void* node, const FirstKernelNode* params))     \
  X(cuGraphExecKernelNodeSetParams_v2, (void* exec, void* node, const KernelNode* params))       \
  X(cuGraphExecNodeSetParams, (void* exec, void* node, NodeParams* params))                      \
  X(cuGraphLaunch, (void* exec, Stream stream))                                                  \
  X(cuGraphLaunch_ptsz, (void* exec, Stream stream))

#define DECLARE(name, arguments) extern "C" Result name arguments;
FUNCTIONS(DECLARE)

#define NUMBER(name, arguments) k_##name,
enum : size_t { FUNCTIONS(NUMBER) kCount };

// The driver's own functions; null if this driver lacks one.
extern void* g_real[kCount];

// Calls the driver's function behind this one.
#define REAL(name, ...)                      \
  (g_real[k_##name] == nullptr ? kNotSupported \
                               : reinterpret_cast<decltype(&name)>(g_real[k_##name])(__VA_ARGS__))

// In fat_binaries.cpp.
const void* unwrapped(const void* image);
uint64_t fat_size(const void* image);

#define WRAP(name) extern "C" __attribute__((visibility("default"))) Result name
