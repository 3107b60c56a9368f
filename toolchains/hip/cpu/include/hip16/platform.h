// This platform's support for 16-bit numbers.
#pragma once

#include <hip/hip_runtime.h>

#define HIP16_INLINE HIPCPU_INLINE
#define HIP16_BEGIN
#define HIP16_END
