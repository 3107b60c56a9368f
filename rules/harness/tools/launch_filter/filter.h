// What is launched, and whether it may be. The vendor's file in launch_filter_cuda/ or
// launch_filter_rocm/ wraps the driver's functions around this.
#pragma once
#include <stddef.h>

#include "owners.h"
#include "pages.h"

enum Decision { kRun, kLeaveOut, kRefuse };

// A function of the driver that this library has, too.
struct Wrapped {
  const char* name;
  void* own;
};

// The vendor's part.
struct Driver {
  const Wrapped* wrapped;
  size_t count;
  void* const* real;                         // the driver's own functions, in the same order
  bool (*launches)(const char* function);    // whether a function not wrapped could launch
  void* refuse;                              // in the place of such a function
  const char* (*name_of)(const void* kernel);  // as the image has it; null where unknown
  Owner (*owner_of)(const void* kernel);       // of one that nobody has been given
  const void* (*unwrapped)(const void* image);  // what a wrapper points at; any other image itself
  uint64_t (*fat_size)(const void* image);      // of a fat binary in bytes; 0 for anything else
  const char* pytorch;                          // how the path of PyTorch's library ends
};

extern const Driver kDriver;

// Looks up the driver's own functions, and has its table of symbols name the filter's. The vendor's
// part calls it as the library is loaded, before anybody has called the driver.
void stand_before(void** real);

// Notes a module or library that was loaded from `image`.
void loaded(const void* home, const void* image);

// Notes a handle that the driver gave for something in `home`, a module, library or kernel.
void given(const void* handle, const void* home);

// Whether the judge's orders are in force.
bool filtering();

// Decides about one launch of a kernel with so many blocks, and counts it.
Decision decide(const void* kernel, uint64_t blocks);

// Decides about a kernel that becomes part of a graph. Nothing is launched yet.
bool may_be_in_graph(const void* kernel, uint64_t blocks);

// Decides about one launch of a graph, whose kernels have been decided about, and counts it.
Decision decide_graph();

// This library's function of a name of the driver's, or in the place of one of its addresses; null
// where there is none.
void* stand_in_for_name(const char* name);
void* stand_in_for_address(const void* real);

// What refuses a function that could launch and is not wrapped; null for any other, and where
// everything may be launched.
void* refusal_of(const char* name);
