// Makes HIP ordinary C++: qualifiers, versions, wave size.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define __HIP__ 1
#define __HIPCC__ 1
#define __HIP_PLATFORM_AMD__ 1  // sources choose between AMD and NVIDIA; this is the AMD dialect
#define __HIP_PLATFORM_CPU__ 1  // threads are fibers of a host process

#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 1
#define HIP_VERSION_PATCH 0
#define HIP_VERSION (HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000 + HIP_VERSION_PATCH)

#ifndef HIPCPU_WAVE_SIZE
#define HIPCPU_WAVE_SIZE 64
#endif
static_assert(HIPCPU_WAVE_SIZE == 32 || HIPCPU_WAVE_SIZE == 64, "the wave size is 32 or 64");

#define HIPCPU_INLINE static inline __attribute__((always_inline))

// Clang reads what the preprocessor makes of a source a second time, as HIP: driver/separation.py
// puts the attributes of HIP in place of these pragmas, which everything else ignores. No macro may
// tell a source which of the two reads it.
#if defined(HIPCPU_EXPLAINED)  // only for the columns in messages, once the source is refused
#define HIPCPU_QUALIFIER(name) __attribute__((name))
#elif defined(__clang__) && !defined(HIPCPU_SANITIZE)
#define HIPCPU_QUALIFIER(name) _Pragma(HIPCPU_QUOTED(hipcpu name))
#define HIPCPU_QUOTED(text) #text
#else
#define HIPCPU_QUALIFIER(name)
#endif
// A kernel is inlined into the loop over its threads. Compilers that can make it local to the
// object do, so that they need not compile unused out-of-line copies.
#if defined(HIPCPU_SANITIZE)
// Code that is inlined into our headers loses its lines, so the sanitizer leaves out the headers.
#define __global__ __attribute__((internal_linkage, noinline))
#elif defined(__clang__)
#define __global__ __attribute__((internal_linkage, always_inline)) HIPCPU_QUALIFIER(global)
#else
#define __global__ __attribute__((visibility("hidden"), always_inline))
#endif
#define __device__ HIPCPU_QUALIFIER(device)
#define __host__ HIPCPU_QUALIFIER(host)
#define __constant__ HIPCPU_QUALIFIER(constant)
#define __managed__ HIPCPU_QUALIFIER(managed)
#define __grid_constant__
// A block runs on one host thread, so shared memory is thread-local. `__thread`, not
// `thread_local`: the latter calls an initialisation wrapper at each access.
#ifndef HIPCPU_SANITIZE
#define __shared__ static __thread HIPCPU_QUALIFIER(shared)
#else
// A checked build runs on one host thread, and pads ordinary variables only.
#define __shared__ static __attribute__((section(".hipcpu_shared")))
#endif

#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__ __restrict
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(variable) variable

static constexpr int warpSize = HIPCPU_WAVE_SIZE;
