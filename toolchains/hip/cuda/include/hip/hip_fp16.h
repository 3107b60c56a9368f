// IEEE half precision: CUDA's type, and the names that only HIP has.
#pragma once

#include <cuda_fp16.h>
#include <hip/hip_runtime.h>
#include <hipcuda/small_floats.h>

HIPCUDA_ANYWHERE __half __double2half_rn(double x) { return __double2half(x); }

HIPCUDA_MIXED_OPERATORS(__half)
