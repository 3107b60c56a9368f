// HIP for a host without a GPU: each GPU thread is a fiber, each block runs on one host thread.
#pragma once

#include <hip/hip_runtime_api.h>
#include <hipcpu/atomics.h>
#include <hipcpu/barrier.h>
#include <hipcpu/bits.h>
#include <hipcpu/context.h>
#include <hipcpu/math.h>
#include <hipcpu/wave.h>
#ifdef HIPCPU_SANITIZE
#include <hipcpu/sanitize.h>
#endif
