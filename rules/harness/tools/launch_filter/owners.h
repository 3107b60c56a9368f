// The owners of the driver's handles: modules, libraries, and the kernels in them.
#pragma once
#include <stdint.h>

enum Owner : uint8_t {
  kUnknown,
  kCandidate,  // its image is the candidate's own
  kPyTorch,    // its image is in PyTorch's library
  kHarness,    // its image is the one in the judge's orders: it is launched, but not counted
  kForeign,
};

// The record of one handle. `home` is the handle of its module or library.
struct Handle {
  const void* handle;
  const void* home;
  Owner owner;
  bool judged;      // whether the fields below are set
  uint8_t copying;  // of PyTorch's kernels, what they do
  int16_t entry;    // in the record; -1 without one
  const char* name;  // set if the driver is not asked for it
};

// Finds the record of a handle. If there is none, it is made with `make`. Null without `make`, or
// if there is no room. The caller holds the lock.
Handle* find(const void* handle, bool make);

// Records that `handle` is in `home`, or is a home itself, and its owner.
void own(const void* handle, const void* home, Owner owner);

// Records `handle` under the home of `in`, if the owner of that may launch kernels.
void own_as(const void* handle, const void* in);

Owner owner_of(const void* handle);

// Stores a copy of a kernel's name, and looks it up; null for none.
void note_name(const void* handle, const char* text);
const char* noted_name(const void* handle);

// Forgets a module or library, and everything in it: the driver may use its handles again.
void forget(const void* home);

// Held while handles are read, and never during a call of the driver.
class Lock {
 public:
  Lock();
  ~Lock();
};
