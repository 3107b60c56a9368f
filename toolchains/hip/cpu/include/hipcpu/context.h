// The identity of the running GPU thread. The runtime owns one Context per host thread and rewrites
// it whenever another GPU thread continues there.
#pragma once

#include <hipcpu/vector_types.h>

namespace hipcpu {

/// The GPU thread that now runs on this host thread, its block and its grid.
struct Context {
  uint3 thread;         ///< threadIdx
  uint32_t current;     ///< linear index of the thread in its block
  uint3 block_dim;      ///< blockDim
  uint3 block;          ///< blockIdx
  uint3 grid_dim;       ///< gridDim
  uint32_t unstarted;   ///< first thread of the block that has not begun; used when interleaved
  uint32_t count;       ///< threads in the block
  uint32_t interleaved; ///< a thread of this block has waited: several fibers share the block
  uint32_t in_kernel;   ///< a kernel is running on this host thread
  char* dynamic_shared; ///< the block's dynamic shared memory
};

}  // namespace hipcpu

// initial-exec: an access is one instruction instead of a call. The structure is small enough for
// the loader's static TLS space.
extern "C" __device__ __thread hipcpu::Context hipcpu_context
    __attribute__((tls_model("initial-exec")));

#define threadIdx (static_cast<const uint3&>(hipcpu_context.thread))
#define blockIdx (static_cast<const uint3&>(hipcpu_context.block))
#define blockDim (static_cast<const uint3&>(hipcpu_context.block_dim))
#define gridDim (static_cast<const uint3&>(hipcpu_context.grid_dim))

// The driver turns `extern __shared__ T name[];` into a pointer to hipcpu_context.dynamic_shared:
// all such names of a kernel share one buffer.
#define HIP_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(hipcpu_context.dynamic_shared);
#define HIP_DYNAMIC_SHARED_ATTRIBUTE

namespace hipcpu {

/// Stands for `extern __shared__ T name[];` outside functions.
template <class T>
struct DynamicShared {
  operator T*() const { return reinterpret_cast<T*>(hipcpu_context.dynamic_shared); }
  template <class U>
  explicit operator U*() const {
    return reinterpret_cast<U*>(hipcpu_context.dynamic_shared);
  }
};

}  // namespace hipcpu

namespace hipcpu {

HIPCPU_INLINE uint32_t lane() { return hipcpu_context.current & (HIPCPU_WAVE_SIZE - 1); }

}  // namespace hipcpu

HIPCPU_INLINE unsigned __lane_id() { return hipcpu::lane(); }
