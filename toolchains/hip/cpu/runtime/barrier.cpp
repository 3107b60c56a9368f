// Barriers of a block.
#include "observer.h"
#include "worker.h"

namespace hipcpu {

void release_barrier(Worker& worker) {
  observe_release(worker);
  for (uint32_t i = 0; i < worker.wave_count; ++i) {
    Wave& wave = worker.waves[i];
    wave.ready |= wave.at_barrier;
    wave.at_barrier = 0;
  }
  worker.arrived = 0;
  worker.decided = worker.votes;
  worker.votes = {0, 1, 0};
}

namespace {

Worker& enter_barrier() {
  Worker& worker = *current_worker;
  if (!hipcpu_context.interleaved) interleave(worker);
  return worker;
}

void wait_for_block(Worker& worker) {
  observe_arrival(worker);
  if (++worker.arrived == worker.live) {
    release_barrier(worker);
    return;
  }
  const uint32_t thread = hipcpu_context.current;
  const uint32_t lane = thread & ((1u << worker.wave_shift) - 1);
  worker.waves[thread >> worker.wave_shift].at_barrier |= 1ull << lane;
  worker.fiber_of[thread] = worker.running;
  yield_fiber(worker);
}

Votes vote(int value) {
  if (hipcpu_context.count == 1) return {value != 0, value != 0, value != 0};
  Worker& worker = enter_barrier();
  worker.votes.any |= value != 0;
  worker.votes.all &= value != 0;
  worker.votes.count += value != 0;
  wait_for_block(worker);
  return worker.decided;
}

}  // namespace
}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

void hipcpu_barrier() noexcept {
  if (hipcpu_context.count == 1) return;
  wait_for_block(enter_barrier());
}

int hipcpu_barrier_or(int value) noexcept { return vote(value).any; }
int hipcpu_barrier_and(int value) noexcept { return vote(value).all; }
int hipcpu_barrier_count(int value) noexcept { return vote(value).count; }

}
