// CUDA's own groups, whose meaning HIP has copied.
#pragma once

#include <cooperative_groups.h>
#include <hip/hip_runtime.h>
