// The few functions of CUDA's driver that the runner calls, looked up in libcuda.so.1.
//
// Declared here and not included from cuda.h, so that any C++ compiler builds the runner. The
// names and layouts are the driver's stable binary interface.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace cuda {

using Address = unsigned long long;
using Handle = unsigned long long;  // of an allocation
using Stream = void*;
using Event = void*;
using Graph = void*;
using GraphExec = void*;
using Context = void*;
using Module = void*;
using Function = void*;

constexpr int kSuccess = 0;
constexpr int kPosixDescriptor = 1;   // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int kDeviceLocation = 1;    // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kReadWrite = 3;         // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
constexpr unsigned kSpin = 1;         // CU_CTX_SCHED_SPIN
constexpr int kRelaxedCapture = 2;    // CU_STREAM_CAPTURE_MODE_RELAXED

struct Access {  // CUmemAccessDesc
  int location;
  int device;
  int flags;
};
static_assert(sizeof(Access) == 12, "the layout of CUmemAccessDesc");

struct Driver {
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*context_retain)(Context*, int);
  int (*context_set_flags)(int, unsigned);
  int (*context_set_current)(Context);
  int (*context_synchronize)();
  int (*stream_create)(Stream*, unsigned);
  int (*event_create)(Event*, unsigned);
  int (*event_record)(Event, Stream);
  int (*event_synchronize)(Event);
  int (*event_elapsed)(float*, Event, Event);
  int (*memory_allocate)(Address*, size_t);
  int (*copy_to_device)(Address, const void*, size_t);
  int (*memory_import)(Handle*, void*, int);
  int (*memory_release)(Handle);
  int (*address_reserve)(Address*, size_t, size_t, Address, unsigned long long);
  int (*address_free)(Address, size_t);
  int (*memory_map)(Address, size_t, size_t, Handle, unsigned long long);
  int (*memory_unmap)(Address, size_t);
  int (*memory_access)(Address, size_t, const Access*, size_t);
  // For gates; null on platforms without them.
  int (*device_attribute)(int*, int, int);
  int (*host_register)(void*, size_t, unsigned);
  int (*host_address)(Address*, void*, unsigned);
  int (*module_load)(Module*, const void*);
  int (*module_function)(Function*, Module, const char*);
  int (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                Stream, void**, void**);
  int (*capture_begin)(Stream, int);
  int (*capture_end)(Stream, Graph*);
  int (*graph_instantiate)(GraphExec*, Graph, unsigned long long);
  int (*graph_upload)(GraphExec, Stream);
  int (*graph_launch)(GraphExec, Stream);
  int (*graph_exec_destroy)(GraphExec);
  int (*graph_destroy)(Graph);
};

// The driver, once `load` has succeeded.
const Driver& driver();

// Loads libcuda.so.1. Returns null, or the first thing that is missing.
const char* load();

// The library, once `load` has succeeded.
void* library();

// The device of this process: the only visible one.
constexpr int kDevice = 0;

}  // namespace cuda
