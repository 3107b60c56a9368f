// Limits host code's access to device memory. Host code cannot reach the memory of real devices, so
// these functions do nothing there.
#pragma once
#include "mapping.h"

// The address behind the system call that protects lent memory, for the system-call filter; null if
// lent memory is not protected.
const void* place_of_protection();

// Reports a call that has copied more than `allowed` bytes to the host. Does not return.
using Refuse = void (*)(uint64_t bytes, uint64_t allowed);

// Looks up the functions of the runtime, before anything hostile is loaded.
void open_hiding(Refuse refuse);

// Guards the call in `slot`, until the next call or `end_guarding`, as the bits of `guarding` say:
// protocol::kHide, kBound. False if the memory cannot be hidden because it was unmapped.
bool begin_guarded_call(const Buffers* buffers, uint32_t slot, int64_t guarding);

void end_guarding();

enum class Met {
  kNothing = 0,    // no hidden memory
  kVisible = 1,    // memory that is visible now: repeat the access
  kFromHost = 2,   // device memory, accessed by host code
  kOtherCall = 3,  // memory of another call, accessed by a kernel
};

// Why an access of this thread has faulted. Safe in a signal handler.
Met explain_fault(const void* address);
