// IEEE half precision: __half, __half2, and HIP's functions on them.
#pragma once

#include <hip16/half.h>
