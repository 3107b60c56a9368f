// Shared by the parts of the host API.
#pragma once

#include "worker.h"

namespace hipcpu {

/// Remembers an error for hipGetLastError, and returns it.
hipError_t record(hipError_t error);

/// hipErrorLaunchFailure from a kernel's failure until hipDeviceReset.
hipError_t device_state();
void set_device_failed(bool failed);

}  // namespace hipcpu
