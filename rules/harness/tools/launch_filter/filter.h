// Decides which launches are permitted, and counts them. launch_filter_cuda/ and
// launch_filter_rocm/ wrap the driver's functions around this.
#pragma once
#include <stddef.h>

#include "owners.h"
#include "pages.h"

enum Decision { kRun, kLeaveOut, kRefuse };

// A function of the driver that this library wraps.
struct Wrapped {
  const char* name;
  void* own;
};

// The vendor's part.
struct Driver {
  const Wrapped* wrapped;
  size_t count;
  void* const* real;                         // the driver's own functions, in the same order
  bool (*launches)(const char* function);    // whether an unwrapped function could launch
  void* refuse;                              // replaces such a function
  const char* (*name_of)(const void* kernel);  // as in the image; null if unknown
  Owner (*owner_of)(const void* kernel);       // of a kernel without a record
  const void* (*unwrapped)(const void* image);  // the image in a wrapper; any other unchanged
  uint64_t (*fat_size)(const void* image);      // of a fat binary in bytes; 0 for anything else
  const char* pytorch;                          // the end of the path of PyTorch's library
};

extern const Driver kDriver;

// Looks up the driver's own functions, and puts the filter's into its table of symbols. The
// vendor's part calls it when the library is loaded, before any call of the driver.
void stand_before(void** real);

// Records a module or library that was loaded from `image`.
void loaded(const void* home, const void* image);

// Records a handle that the driver returned for something in `home`: a module, library or kernel.
void given(const void* handle, const void* home);

// Whether the judge's orders are in force.
bool filtering();

// Decides about one launch of a kernel with this many blocks, and counts it.
Decision decide(const void* kernel, uint64_t blocks);

// Decides about a kernel that becomes part of a graph. Nothing is launched yet.
bool may_be_in_graph(const void* kernel, uint64_t blocks);

// Decides about one launch of a graph, whose kernels were permitted before, and counts it.
Decision decide_graph();

// This library's function that wraps the driver's function with this name or address; null if there
// is none.
void* stand_in_for_name(const char* name);
void* stand_in_for_address(const void* real);

// The function that replaces an unwrapped one that could launch; null for any other, and if
// everything may be launched.
void* refusal_of(const char* name);
