// What the busiest thread of a launch does, for which its multiprocessor waits at the end.
#pragma once

#include <stdint.h>

namespace hipcpu {

struct Busiest {
  uint64_t loads;       // of global memory, atomic operations included: it waits for each
  uint64_t operations;  // of arithmetic
};

void begin_busiest();
/// What follows is another block's.
void begin_block_busiest();
/// The current thread has made one more.
void note_load();
void note_operations(uint32_t operations);

/// The most of each that one thread has made, not always the same one.
Busiest busiest();

}  // namespace hipcpu
