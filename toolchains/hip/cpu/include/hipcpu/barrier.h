// Block-wide barriers, fences, and failing kernels.
#pragma once

#include <hipcpu/context.h>

extern "C" {
/// Waits until all threads of the block that have not returned wait too.
void hipcpu_barrier() noexcept;
/// The same, and combines `value != 0` over those threads.
int hipcpu_barrier_or(int value) noexcept;
int hipcpu_barrier_and(int value) noexcept;
int hipcpu_barrier_count(int value) noexcept;
/// Ends the kernel with hipErrorLaunchFailure, and prints the reason on stderr.
__attribute__((noreturn)) void hipcpu_fail(const char* reason) noexcept;
}

HIPCPU_INLINE void __syncthreads() { hipcpu_barrier(); }
HIPCPU_INLINE int __syncthreads_or(int predicate) { return hipcpu_barrier_or(predicate); }
HIPCPU_INLINE int __syncthreads_and(int predicate) { return hipcpu_barrier_and(predicate); }
HIPCPU_INLINE int __syncthreads_count(int predicate) { return hipcpu_barrier_count(predicate); }

HIPCPU_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
HIPCPU_INLINE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// The threads of a block share a host thread, so only the compiler may reorder their accesses.
HIPCPU_INLINE void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

HIPCPU_INLINE void __trap() { hipcpu_fail("a thread executed __trap()"); }

#define __builtin_amdgcn_s_barrier() hipcpu_barrier()
#define __builtin_amdgcn_fence(order, scope, ...) __threadfence()
#define __builtin_amdgcn_sched_barrier(mask) ((void)(mask))
#define __builtin_amdgcn_s_sleep(cycles) ((void)(cycles))
#define __builtin_amdgcn_s_setprio(priority) ((void)(priority))
#define __builtin_amdgcn_s_waitcnt(counters) ((void)(counters))
