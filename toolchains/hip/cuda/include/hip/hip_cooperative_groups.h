// The groups are CUDA's own, with their meaning: HIP copied it.
#pragma once

#include <cooperative_groups.h>
#include <hip/hip_runtime.h>
