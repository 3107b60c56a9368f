// Stacks for GPU threads that wait.
#include "worker.h"

#include <sys/mman.h>

#include "switch.h"

namespace hipcpu {

namespace {

constexpr size_t kGuardBytes = 64 << 10;  // below each stack; touching it is a fault
constexpr size_t kSlotBytes = kStackBytes + kGuardBytes;
constexpr uint32_t kChunkFibers = 64;
constexpr size_t kChunkBytes = kChunkFibers * kSlotBytes;

void run_fiber() {
  for (;;) {
    Worker& worker = *current_worker;
    worker.job->body(worker.job->arguments);
    worker.idle[worker.idle_count++] = worker.running;
    yield_fiber(worker);
  }
}

char* map_chunk() {
  void* chunk = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (chunk == MAP_FAILED) return nullptr;
  char* stacks = static_cast<char*>(chunk);
  for (uint32_t i = 0; i < kChunkFibers; ++i) {
    mprotect(stacks + i * kSlotBytes, kGuardBytes, PROT_NONE);
  }
  return stacks;
}

}  // namespace

Fiber* take_fiber(Worker& worker) {
  if (worker.idle_count != 0) return worker.idle[--worker.idle_count];
  const uint32_t index = worker.fiber_count;
  char*& chunk = worker.stacks[index / kChunkFibers];
  if (chunk == nullptr) chunk = map_chunk();
  if (chunk == nullptr) return nullptr;
  ++worker.fiber_count;
  char* slot = chunk + (index % kChunkFibers) * kSlotBytes;
  // Stack tops at equal offsets would compete for the same set of the first-level cache.
  const size_t colour = index * 5 % 32 * 64;
  void** frame = reinterpret_cast<void**>(slot + kSlotBytes - colour) - kFrameSlots;
  for (uint32_t i = 0; i < kFrameSlots; ++i) frame[i] = nullptr;
  frame[kReturnSlot] = reinterpret_cast<void*>(&run_fiber);
  Fiber* fiber = &worker.fibers[index];
  fiber->stack_pointer = frame;
  return fiber;
}

#ifdef HIPCPU_OBSERVED
bool is_stack(const Worker& worker, const void* address) {
  const char* byte = static_cast<const char*>(address);
  for (const char* chunk : worker.stacks) {
    if (chunk != nullptr && byte >= chunk && byte < chunk + kChunkBytes) return true;
  }
  return false;
}
#endif

bool is_guard_page(const Worker& worker, const void* address) {
  const char* byte = static_cast<const char*>(address);
  for (const char* chunk : worker.stacks) {
    if (chunk == nullptr || byte < chunk || byte >= chunk + kChunkBytes) continue;
    return static_cast<size_t>(byte - chunk) % kSlotBytes < kGuardBytes;
  }
  return false;
}

}  // namespace hipcpu
