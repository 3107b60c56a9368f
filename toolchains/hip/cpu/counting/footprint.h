// Which sectors of global memory a launch has read and written, each of them once.
#pragma once

#include "requests.h"

namespace hipcpu {

void begin_footprint();
/// An atomic operation reads and writes.
void note_sector(uint64_t sector, Operation operation);

struct Footprint {
  uint64_t read;     // sectors
  uint64_t written;
  bool whole;        // false if there were too many to keep
};
Footprint footprint();

}  // namespace hipcpu
