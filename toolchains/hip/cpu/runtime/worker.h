// The state of one host thread that runs blocks: its fibers, and the state of each GPU thread.
#pragma once

#include <hip/hip_runtime.h>

namespace hipcpu {

constexpr uint32_t kMaxThreads = 1024;              // of a block
constexpr uint32_t kMaxWaves = kMaxThreads / 32;
constexpr size_t kMaxSharedBytes = 64 << 10;        // dynamic shared memory of a block
constexpr size_t kStackBytes = 64 << 10;            // of a GPU thread
constexpr size_t kSignalStackBytes = 64 << 10;

/// One kernel launch, shared by the workers that take blocks from it.
struct Job {
  dim3 grid;
  dim3 block;
  uint32_t threads;  // of a block
  uint32_t wave_size;
  size_t shared_bytes;
  void (*body)(const void*);
  const void* arguments;
  uint64_t blocks;
  uint64_t next_block;  // atomic
  uint32_t failed;      // atomic; set by hipcpu_fail
};

/// A stack on which GPU threads run. Its stack pointer is valid while it does not run.
struct Fiber {
  void* stack_pointer;
};

/// The lanes of one wave, as bit masks. A live lane is in at most one of the three states; a lane
/// in none of them runs or has not started.
struct Wave {
  uint64_t live;         // has not returned
  uint64_t ready;        // may continue
  uint64_t at_barrier;   // waits for the block
  uint64_t at_exchange;  // waits for lanes of its wave
  bool uniform;          // the lanes in at_exchange have the same site and the same wanted mask
  uint32_t site;         // of the first lane that came to the exchange
  uint64_t wanted;       // of the first lane that came to the exchange
};

/// What a lane posted when it came to an exchange.
struct Post {
  uint64_t value;
  uint64_t wanted;
  uint32_t site;
};

/// Accumulates the predicates of a barrier, and holds those of the last one.
struct Votes {
  int any;
  int all;
  int count;
};

struct Worker {
  Job* job;
  void* host_stack;   // where the host thread waits while fibers run
  bool done;          // no block is left, or the kernel failed
  Fiber* running;
  Fiber* fiber_of[kMaxThreads];  // of a thread that waits
  Fiber fibers[kMaxThreads];
  uint32_t fiber_count;
  Fiber* idle[kMaxThreads];
  uint32_t idle_count;

  uint32_t wave_shift;
  uint32_t wave_count;
  uint32_t live;      // threads of the block that have not returned
  uint32_t arrived;   // threads at the barrier
  Wave waves[kMaxWaves];
  Post posts[kMaxThreads];
  uint64_t exchanged[kMaxThreads];  // what each lane posted to its last exchange
  uint64_t met[kMaxThreads];        // the lanes that took part in it
  Votes votes;
  Votes decided;

  dim3 thread_table_for;
  uint3 thread_table[kMaxThreads];  // linear index to threadIdx
  char* dynamic_shared;
  size_t dynamic_shared_capacity;
  char* stacks[kMaxThreads / 64];   // chunks of 64 fiber stacks, mapped when first needed
  alignas(64) char signal_stack[kSignalStackBytes];
};

/// The calling host thread's worker; null before its first block.
extern __thread Worker* current_worker __attribute__((tls_model("initial-exec")));

/// Runs blocks of the job on the calling host thread until none is left or the kernel failed.
/// False if there was no memory for the worker; then it has taken no block.
bool run_blocks(Job* job);

// fibers.cpp
/// A fiber that will run threads, beginning with the current one; null if there is no memory.
Fiber* take_fiber(Worker& worker);
#ifdef HIPCPU_OBSERVED
bool is_stack(const Worker& worker, const void* address);
#endif
bool is_guard_page(const Worker& worker, const void* address);

// scheduler.cpp
/// Leaves the running fiber, which may be continued later, for another thread of the block.
void yield_fiber(Worker& worker);
/// Marks the first thread of the next block current. False when there is none.
bool begin_block(Worker& worker);
/// Starts to track the state of each thread of the block; from now on each that waits has a fiber.
void interleave(Worker& worker);
void make_current(Worker& worker, uint32_t thread);

// barrier.cpp
void release_barrier(Worker& worker);

// wave.cpp
/// Lets one group of lanes that wait for each other continue, if need be without lanes that
/// diverged. False if no lane waits for its wave.
bool resolve_divergence(Worker& worker);

}  // namespace hipcpu
