// IEEE half precision: CUDA's type, and HIP's additional names.
#pragma once

#include <cuda_fp16.h>
#include <hip/hip_runtime.h>
#include <hipcuda/small_floats.h>

HIPCUDA_ANYWHERE __half __double2half_rn(double x) { return __double2half(x); }

HIPCUDA_MIXED_OPERATORS(__half)
