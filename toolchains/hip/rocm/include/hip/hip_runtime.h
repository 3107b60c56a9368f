// HIP for AMD's processors, where no ROCm is installed. The runtime's interface and most device
// functions are AMD's own headers, which Triton's distribution carries; what these leave to clang's
// or to headers that are not there (the grid, mathematics, 16-bit floats) is in hiprocm/.
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
