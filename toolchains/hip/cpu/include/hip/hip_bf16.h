// bfloat16: __hip_bfloat16, __hip_bfloat162, and HIP's functions on them.
#pragma once

#include <hip16/bfloat16.h>
