// HIP for AMD's processors without an installed ROCm. The runtime's interface and most device
// functions are AMD's own headers, from Triton's distribution. These rely on headers of clang and
// of ROCm for the grid, mathematics and 16-bit floats; hiprocm/ replaces those.
#pragma once

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif

#include <hip/hip_runtime_api.h>
#include <hip/amd_detail/amd_hip_atomic.h>
#include <hip/amd_detail/amd_device_functions.h>
#include <hip/amd_detail/hip_ldg.h>
#include <hiprocm/grid.h>
#include <hiprocm/math.h>
