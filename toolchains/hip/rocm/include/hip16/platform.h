// What 16-bit numbers need on this platform: functions for the host and the device.
#pragma once

#include <hip/hip_runtime.h>

#define HIP16_INLINE inline
#define HIP16_BEGIN _Pragma("clang force_cuda_host_device begin")
#define HIP16_END _Pragma("clang force_cuda_host_device end")
#define HIP16_NATIVE_BFLOAT16 1
