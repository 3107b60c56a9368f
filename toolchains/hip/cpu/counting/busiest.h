// What the busiest thread of a launch does, for which its multiprocessor waits at the end.
#pragma once

#include <stdint.h>

namespace hipcpu {

struct Busiest {
  uint64_t loads;       // of global memory, atomic operations included: it waits for each
  uint64_t operations;  // of arithmetic
};

void begin_busiest();
/// Starts another block: each of its threads counts from zero.
void begin_block_busiest();
/// The current thread has loaded once more, or computed so much more.
void note_load();
void note_operations(uint32_t operations);

/// The most of each that one thread has made, not always the same one.
Busiest busiest();

}  // namespace hipcpu
