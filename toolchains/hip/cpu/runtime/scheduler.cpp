// Chooses the GPU thread that runs next on a host thread.
#include "worker.h"

#include <sys/mman.h>

#include "observer.h"
#include "overflow.h"
#include "switch.h"

extern "C" {
__thread hipcpu::Context hipcpu_context __attribute__((tls_model("initial-exec")));
}

namespace hipcpu {

__thread Worker* current_worker __attribute__((tls_model("initial-exec")));

namespace {

uint64_t lanes_below(uint32_t count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }

Fiber* continue_lane(Worker& worker, uint32_t wave_index) {
  Wave& wave = worker.waves[wave_index];
  const uint32_t thread =
      (wave_index << worker.wave_shift) + static_cast<uint32_t>(__builtin_ctzll(wave.ready));
  wave.ready &= wave.ready - 1;
  make_current(worker, thread);
  return worker.fiber_of[thread];
}

// Threads that have not begun come first, then the wave of the thread that ran last: its lanes
// probably wait for each other.
Fiber* choose(Worker& worker) {
  Context& context = hipcpu_context;
  if (context.unstarted < context.count) {
    Fiber* fiber = take_fiber(worker);
    if (fiber == nullptr) hipcpu_fail("no memory for the stacks of the threads of a block");
    make_current(worker, context.unstarted++);
    return fiber;
  }
  for (;;) {
    uint32_t wave = context.current >> worker.wave_shift;
    for (uint32_t i = 0; i < worker.wave_count; ++i) {
      if (worker.waves[wave].ready != 0) return continue_lane(worker, wave);
      wave = wave + 1 == worker.wave_count ? 0 : wave + 1;
    }
    if (!resolve_divergence(worker)) {
      hipcpu_fail("deadlock: no thread of the block can continue");
    }
  }
}

Worker* make_worker() {
  void* memory = mmap(nullptr, sizeof(Worker), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  Worker* worker = static_cast<Worker*>(memory);
  watch_for_overflow(*worker);
  return worker;
}

void fill_thread_table(Worker& worker, const dim3& block) {
  const dim3& known = worker.thread_table_for;
  if (known.x == block.x && known.y == block.y && known.z == block.z) return;
  worker.thread_table_for = block;
  uint32_t thread = 0;
  for (uint32_t z = 0; z < block.z; ++z) {
    for (uint32_t y = 0; y < block.y; ++y) {
      for (uint32_t x = 0; x < block.x; ++x) worker.thread_table[thread++] = {x, y, z};
    }
  }
}

bool reserve_dynamic_shared(Worker& worker, size_t bytes) {
  if (bytes <= worker.dynamic_shared_capacity) return true;
  void* memory = mmap(nullptr, kMaxSharedBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  worker.dynamic_shared = static_cast<char*>(memory);
  worker.dynamic_shared_capacity = kMaxSharedBytes;
  return true;
}

}  // namespace

void make_current(Worker& worker, uint32_t thread) {
  hipcpu_context.current = thread;
  hipcpu_context.thread = worker.thread_table[thread];
}

bool begin_block(Worker& worker) {
  Job& job = *worker.job;
  const uint64_t block = __atomic_fetch_add(&job.next_block, 1, __ATOMIC_RELAXED);
  if (block >= job.blocks || __atomic_load_n(&job.failed, __ATOMIC_RELAXED) != 0) {
    worker.done = true;
    return false;
  }
  Context& context = hipcpu_context;
  const uint64_t row = block / job.grid.x;
  context.block = {block % job.grid.x, row % job.grid.y, row / job.grid.y};
  context.thread = {0, 0, 0};
  context.current = 0;
  context.unstarted = job.threads;
  context.interleaved = 0;
  observe_block(worker, block);
  return true;
}

void interleave(Worker& worker) {
  Context& context = hipcpu_context;
  context.interleaved = 1;
  context.unstarted = context.current + 1;
  worker.live = context.count - context.current;
  worker.arrived = 0;
  worker.votes = {0, 1, 0};
  for (uint32_t i = 0; i < worker.wave_count; ++i) {
    const uint32_t first = i << worker.wave_shift;
    const uint32_t end = first + (1u << worker.wave_shift);
    const uint32_t from = context.current > first ? context.current - first : 0;
    const uint32_t to = (context.count < end ? context.count : end) - first;
    worker.waves[i] = Wave{};
    worker.waves[i].uniform = true;
    if (first < context.count && from < to) {
      worker.waves[i].live = lanes_below(to) & ~lanes_below(from);
    }
  }
}

// The only caller of hipcpu_switch for fibers. Kept out of line: see switch_x86_64.S.
__attribute__((noinline)) void yield_fiber(Worker& worker) {
  void** save = &worker.running->stack_pointer;
  void* to = worker.host_stack;
  if (__builtin_expect(!worker.done, 1)) {
    Context& context = hipcpu_context;
    const uint32_t wave = context.current >> worker.wave_shift;
    const bool same_wave =
        context.unstarted >= context.count && worker.waves[wave].ready != 0;
    Fiber* next = same_wave ? continue_lane(worker, wave) : choose(worker);
    if (next == worker.running) return;
    worker.running = next;
    to = next->stack_pointer;
  }
  hipcpu_switch(save, to);
}

bool run_blocks(Job* job) {
  if (current_worker == nullptr) current_worker = make_worker();
  if (current_worker == nullptr) return false;
  Worker& worker = *current_worker;
  if (!reserve_dynamic_shared(worker, job->shared_bytes)) return false;
  worker.job = job;
  worker.done = false;
  worker.wave_shift = static_cast<uint32_t>(__builtin_ctz(job->wave_size));
  worker.wave_count = (job->threads + job->wave_size - 1) >> worker.wave_shift;
  fill_thread_table(worker, job->block);
  Context& context = hipcpu_context;
  context.block_dim = job->block;
  context.grid_dim = job->grid;
  context.count = job->threads;
  context.dynamic_shared = worker.dynamic_shared;
  worker.running = take_fiber(worker);
  if (worker.running == nullptr) return false;
  context.in_kernel = 1;
  if (begin_block(worker)) {
    hipcpu_switch(&worker.host_stack, worker.running->stack_pointer);
  } else {
    worker.idle[worker.idle_count++] = worker.running;
  }
  context.in_kernel = 0;
  if (__atomic_load_n(&job->failed, __ATOMIC_RELAXED) != 0) {
    // Fibers may have stopped in the middle of a thread, so all of them are made again.
    worker.fiber_count = 0;
    worker.idle_count = 0;
  }
  return true;
}

}  // namespace hipcpu

using namespace hipcpu;

extern "C" bool hipcpu_next_thread() noexcept {
  Worker& worker = *current_worker;
  Context& context = hipcpu_context;
  if (!context.interleaved) {
    if (context.current + 1 >= context.count) return begin_block(worker);
    make_current(worker, context.current + 1);
    return true;
  }
  Wave& wave = worker.waves[context.current >> worker.wave_shift];
  wave.live &= ~(1ull << (context.current & ((1u << worker.wave_shift) - 1)));
  if (--worker.live == 0) return begin_block(worker);
  if (worker.arrived == worker.live) release_barrier(worker);
  if (context.unstarted >= context.count) return false;
  make_current(worker, context.unstarted++);
  return true;
}
