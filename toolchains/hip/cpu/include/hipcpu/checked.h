// Comes before a source that clang reads as HIP, to see which functions call which. All that is
// declared here may be called by kernels and by the host: HIP's functions, and what kernels may use
// of the C library. Functions of other headers are the host's, unless they are constexpr.
#pragma once

#pragma clang force_cuda_host_device begin
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <hip/hip_vector_types.h>
#pragma clang force_cuda_host_device end

// assert.h may come again, and declares the host's.
extern "C" __device__ void __assert_fail(const char* what, const char* file, unsigned line,
                                         const char* function) noexcept;
