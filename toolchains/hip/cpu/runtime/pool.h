// The host threads that share the blocks of a launch.
#pragma once

#include "worker.h"

namespace hipcpu {

/// Host threads that run blocks, the caller's included: KABUILD_CPU_WORKERS, or one for each
/// processor that this process may use.
uint32_t worker_count();

/// Runs all blocks of the job on the caller and, if that is faster, on the helpers.
/// False if there was no memory to run any of them.
bool run_job(Job* job);

}  // namespace hipcpu
