// How many other sectors of global memory a launch accesses before it comes back to one.
//
// A cache that keeps the sectors which were accessed last serves an access if it holds more sectors
// than its distance. Blocks run one after the other here, and warps between two barriers, too.
#pragma once

#include "requests.h"

namespace hipcpu {

constexpr uint32_t kDistances = 32;

/// Accesses of one kind to sectors, by their distances: entry 0 is of distance 0, entry k of those
/// from 1 << (k - 1) that are less than 1 << k.
struct Reuse {
  uint64_t first;               // to sectors that the launch had not accessed before
  uint64_t within[kDistances];  // to those that the same block accessed last
  uint64_t across[kDistances];  // to those that another block accessed last
};

void begin_reuse();
/// What follows is another block's.
void begin_block_reuse();
void note_reuse(uint64_t sector, Operation operation);

/// Of loads, stores or atomic operations.
const Reuse& reuse(Operation operation);
/// 1 if each sector was followed; else one in so many was, and figures are estimates from these.
uint64_t reuse_one_in();

}  // namespace hipcpu
