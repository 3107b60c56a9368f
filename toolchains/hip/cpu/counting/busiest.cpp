#include "busiest.h"

#include <string.h>

#include "../runtime/worker.h"

namespace hipcpu {

namespace {

Busiest threads[kMaxThreads];  // of the block
Busiest most;

void raise(uint64_t& known, uint64_t value) {
  if (value > known) known = value;
}

}  // namespace

void begin_busiest() {
  most = {0, 0};
  begin_block_busiest();
}

void begin_block_busiest() { memset(threads, 0, sizeof threads); }

void note_load() { raise(most.loads, ++threads[hipcpu_context.current].loads); }

void note_operations(uint32_t operations) {
  raise(most.operations, threads[hipcpu_context.current].operations += operations);
}

Busiest busiest() { return most; }

}  // namespace hipcpu
