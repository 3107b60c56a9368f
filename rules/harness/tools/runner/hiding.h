// What host code may see of device memory. On real devices it can reach none of it, and there all
// of this does nothing.
#pragma once
#include "mapping.h"

// Where the system call is made that protects lent memory, for the system-call filter; null if that is
// not protected.
const void* place_of_protection();

// What is told of a call that copies more than `allowed` bytes to the host. Does not return.
using Refuse = void (*)(uint64_t bytes, uint64_t allowed);

// Looks up what is needed, before anything hostile is loaded.
void open_hiding(Refuse refuse);

// Guards the call in `slot`, until the next one or the end, as the bits of `guarding` say:
// protocol::kHide, kBound. False if that memory is not there any more.
bool begin_guarded_call(const Buffers* buffers, uint32_t slot, int64_t guarding);

void end_guarding();

enum class Met {
  kNothing = 0,    // that was hidden
  kVisible = 1,    // now: repeat the access
  kFromHost = 2,   // device memory, accessed by host code
  kOtherCall = 3,  // memory of another call, accessed by a kernel
};

// Why an access of this thread has faulted. Safe in a signal handler.
Met explain_fault(const void* address);
