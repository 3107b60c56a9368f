// The runtime's notifications about a running kernel.
#include "../runtime/observer.h"

#include <stdio.h>
#include <string.h>

#include "access.h"

namespace hipcpu {

namespace {

struct BarrierPlace {
  const char* file;
  uint32_t line;
  Caller caller;
};
BarrierPlace coming;   // of the barrier that the current thread is about to enter
BarrierPlace waiting;  // of the first thread at the barrier
bool anyone_waits;

// The line in the author's file, or else the caller of the header that has the barrier.
PlaceText text_of(const BarrierPlace& place) {
  PlaceText out = {};
  snprintf(out.text, sizeof out.text, "at:%s:%u:1,%s", place.file, place.line,
           place_of(place.caller).text);
  return out;
}

bool same_place(const BarrierPlace& a, const BarrierPlace& b) {
  return a.line == b.line && strcmp(a.file, b.file) == 0;
}

}  // namespace

void observe_launch(const Job& job) {
  begin_launch(job);
  anyone_waits = false;
}

void observe_end(const Job&) {
  settle_last_write();
  name_kernel("");
}

void observe_block(const Worker& worker, uint64_t block) {
  settle_last_write();
  begin_block(block, worker.wave_shift);
  anyone_waits = false;
  if (block != 0) return;
  remove_region(worker.dynamic_shared);
  if (worker.job->shared_bytes != 0) {
    add_region(Kind::kDynamicShared, worker.dynamic_shared, worker.job->shared_bytes,
               kMaxSharedBytes, "", false);
  }
}

void observe_arrival(const Worker& worker) {
  settle_last_write();
  if (!anyone_waits) {
    waiting = coming;
  } else if (!same_place(waiting, coming)) {
    const Context& context = hipcpu_context;
    found("DIVERGENT_BARRIER", text_of(coming).text, text_of(waiting).text,
          "block (%u,%u,%u) thread (%u,%u,%u) waits here, and %u others at {other}",
          context.block.x, context.block.y, context.block.z, context.thread.x, context.thread.y,
          context.thread.z, worker.arrived);
  }
  anyone_waits = true;
}

void observe_release(const Worker& worker) {
  settle_last_write();
  const Context& context = hipcpu_context;
  if (anyone_waits && worker.arrived != context.count) {
    found("DIVERGENT_BARRIER", text_of(waiting).text, "",
          "%u of the %u threads of block (%u,%u,%u) come here; the others have returned",
          worker.arrived, context.count, context.block.x, context.block.y, context.block.z);
  }
  anyone_waits = false;
  pass_barrier(context.count);
}

void observe_exchange(const Worker&, uint32_t wave, uint64_t group) {
  settle_last_write();
  meet_lanes(wave, group);
}

void observe_allocation(const void* memory, size_t bytes) {
  add_region(Kind::kAllocation, memory, bytes, bytes, "", false);
}

void observe_free(const void* memory) { remove_region(memory); }

void observe_host_write(const void* memory, size_t bytes) { mark_initialised(memory, bytes); }

}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

void hipcpu_sanitizer_barrier(const char* file, uint32_t line) noexcept {
  coming = {file, line, HIPCPU_CALLER};
}

void hipcpu_sanitizer_kernel(const char* name) noexcept { name_kernel(name); }

}
