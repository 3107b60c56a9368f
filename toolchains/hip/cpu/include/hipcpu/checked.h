// Included before a source that clang reads as HIP, to see which functions call which. Kernels and
// the host may call everything declared here: HIP's functions, and those of the C library that
// kernels may use. Functions of other headers are for the host only, unless they are constexpr.
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

// assert.h may be included again, and declares this function for the host only.
extern "C" __device__ void __assert_fail(const char* what, const char* file, unsigned line,
                                         const char* function) noexcept;
