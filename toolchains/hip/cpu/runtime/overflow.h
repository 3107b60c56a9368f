// Stack overflow of a GPU thread.
#pragma once

#include "worker.h"

namespace hipcpu {

/// Called once on each host thread that runs blocks, before the first of them.
void watch_for_overflow(Worker& worker);

}  // namespace hipcpu
