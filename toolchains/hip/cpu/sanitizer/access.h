// The check of one access of a kernel to memory.
#pragma once

#include "findings.h"
#include "regions.h"

namespace hipcpu {

struct Access {
  uintptr_t address;
  size_t bytes;
  bool write;
  bool atomic;  // volatile accesses too: kernels use those to talk
};

/// Reports what is wrong with an access that is about to happen; a wrong address ends the kernel.
/// Returns the first cell that is accessed, for atomic operations; null if there is none.
Cell* check(const Access& access, const Caller& caller);

/// Decides whether the last write was a race: writing the value that another thread has written is
/// not. Called before anything else happens.
void settle_last_write();

}  // namespace hipcpu
