// The costs of one request of a wave.
#pragma once

#include "requests.h"

namespace hipcpu {

/// One visit of a wave's lanes to a site together.
struct Request {
  uint64_t lanes;                  // that took part
  uint64_t address[kMostLanes];    // of each lane, as if tensors began at 256 bytes
};

/// Adds a request, of either width; `live` are the lanes of the wave that have threads.
void add_request(Site& site, const Request& request, uint64_t live, uint32_t wave_shift);

}  // namespace hipcpu
