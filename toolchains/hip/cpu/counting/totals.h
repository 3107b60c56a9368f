// What one request of a wave costs.
#pragma once

#include "requests.h"

namespace hipcpu {

/// One time that lanes of a wave came to a site together.
struct Request {
  uint64_t lanes;                  // that took part
  uint64_t address[kMostLanes];    // of each of them: of tensors as if they began at 256 bytes
};

/// Adds a request; `live` are the lanes of the wave that have threads. Of both widths.
void add_request(Site& site, const Request& request, uint64_t live, uint32_t wave_shift);

}  // namespace hipcpu
