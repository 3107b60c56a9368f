// Which sectors of global memory a launch, and each of its blocks, has read and written.
#pragma once

#include "requests.h"

namespace hipcpu {

void begin_footprint();
/// What follows is another block's.
void begin_block_footprint();
/// An atomic operation reads and writes.
void note_sector(uint64_t sector, Operation operation);

struct Footprint {
  uint64_t read;            // sectors, each once, without those that were written first
  uint64_t written;
  uint64_t read_by_blocks;  // once for each block that loads it: a cache lost at a block's end
  uint64_t most_of_block;   // that one block accesses
  bool whole;               // false if there were too many to keep
};
Footprint footprint();

}  // namespace hipcpu
