// bfloat16: CUDA's type under HIP's names.
#pragma once

#include <cuda_bf16.h>
#include <hip/hip_runtime.h>
#include <hipcuda/small_floats.h>

using __hip_bfloat16 = __nv_bfloat16;
using __hip_bfloat162 = __nv_bfloat162;

HIPCUDA_MIXED_OPERATORS(__nv_bfloat16)
