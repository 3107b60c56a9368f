// Notifies the sanitizing or counting runtime about a running kernel. In the usual build these
// functions are empty, and the code is the same as without them.
#pragma once

#include "worker.h"

namespace hipcpu {

#ifdef HIPCPU_OBSERVED
void observe_launch(const Job& job);
void observe_end(const Job& job);
void observe_block(const Worker& worker, uint64_t block);
/// The current thread has arrived at a barrier.
void observe_arrival(const Worker& worker);
/// All threads of the block that have not returned are at a barrier.
void observe_release(const Worker& worker);
/// The lanes of the group have arrived at an exchange.
void observe_exchange(const Worker& worker, uint32_t wave, uint64_t group);
void observe_allocation(const void* memory, size_t bytes);
void observe_free(const void* memory);
/// The host has written to memory.
void observe_host_write(const void* memory, size_t bytes);
constexpr bool kObserved = true;
#else
inline void observe_launch(const Job&) {}
inline void observe_end(const Job&) {}
inline void observe_block(const Worker&, uint64_t) {}
inline void observe_arrival(const Worker&) {}
inline void observe_release(const Worker&) {}
inline void observe_exchange(const Worker&, uint32_t, uint64_t) {}
inline void observe_allocation(const void*, size_t) {}
inline void observe_free(const void*) {}
inline void observe_host_write(const void*, size_t) {}
constexpr bool kObserved = false;
#endif

}  // namespace hipcpu
