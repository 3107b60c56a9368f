// Dynamic shared memory. The driver turns `extern __shared__ T name[];` inside functions into a
// pointer to one array: CUDA refuses two such names of different types in one source.
#pragma once

#include <hipcuda/platform.h>

extern __shared__ __align__(128) unsigned char hipcuda_dynamic_shared[];

#define HIP_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(hipcuda_dynamic_shared);
