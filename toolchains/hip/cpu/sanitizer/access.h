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

/// Reports what is wrong with an access that is about to happen, and ends the kernel where the
/// address is. The first cell of what is accessed, for atomic operations; null where none is.
Cell* check(const Access& access, const Caller& caller);

/// Whether the last write was a race: not if another thread had written the same value. Called
/// before anything else happens.
void settle_last_write();

}  // namespace hipcpu
