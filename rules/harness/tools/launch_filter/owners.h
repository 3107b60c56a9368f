// Whose the driver's handles are: those of modules and libraries, and of the kernels in them.
#pragma once
#include <stdint.h>

enum Owner : uint8_t {
  kUnknown,
  kCandidate,  // its image is the candidate's own
  kPyTorch,    // its image is in PyTorch's library
  kHarness,    // its image is what the judge's orders say: it is launched, and not counted
  kForeign,
};

// What is known of one handle. `home` is the handle of its module or library.
struct Handle {
  const void* handle;
  const void* home;
  Owner owner;
  bool judged;      // whether what is below has been decided
  uint8_t copying;  // of PyTorch's kernels, what they do
  int16_t entry;    // in the record; -1 without one
  const char* name;  // where the driver is not asked for it
};

// What is known of a handle. Where nothing is: kUnknown in a fresh place with `make`, and null
// without, or when there is no room for more. The caller holds the lock.
Handle* find(const void* handle, bool make);

// Notes that `handle` is in `home`, or is a home itself, and whose it is.
void own(const void* handle, const void* home, Owner owner);

// Notes that `handle` belongs to what `in` does, where that is somebody who may launch.
void own_as(const void* handle, const void* in);

Owner owner_of(const void* handle);

// Remembers a copy of a kernel's name, and gives it back; null for none.
void note_name(const void* handle, const char* text);
const char* noted_name(const void* handle);

// Forgets a module or library, and everything in it: the driver may use its handles again.
void forget(const void* home);

// Held while handles are looked at. Never within a call of the driver.
class Lock {
 public:
  Lock();
  ~Lock();
};
