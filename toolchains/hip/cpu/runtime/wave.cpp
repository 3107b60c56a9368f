// Exchanges among the lanes of a wave.
#include "observer.h"
#include "worker.h"

namespace hipcpu {

namespace {

// Adds a waiting lane to the wave's exchange.
void note_arrival(Wave& wave, const Post& post, uint64_t lane) {
  if (wave.at_exchange == 0) {
    wave.site = post.site;
    wave.wanted = post.wanted;
    wave.uniform = true;
  } else if (wave.site != post.site || wave.wanted != post.wanted) {
    wave.uniform = false;
  }
  wave.at_exchange |= lane;
}

// The waiting lanes with the same site and the same wanted mask as `post`.
uint64_t group_of(const Worker& worker, uint32_t wave_index, const Post& post) {
  const Wave& wave = worker.waves[wave_index];
  if (wave.uniform) return wave.at_exchange;
  uint64_t group = 0;
  for (uint64_t rest = wave.at_exchange; rest != 0; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(__builtin_ctzll(rest));
    const Post& other = worker.posts[(wave_index << worker.wave_shift) + lane];
    if (other.site == post.site && other.wanted == post.wanted) group |= 1ull << lane;
  }
  return group;
}

// Shows the lanes of the group to each other and lets them continue.
void complete(Worker& worker, uint32_t wave_index, uint64_t group) {
  observe_exchange(worker, wave_index, group);
  Wave& wave = worker.waves[wave_index];
  const uint32_t first = wave_index << worker.wave_shift;
  for (uint64_t rest = group; rest != 0; rest &= rest - 1) {
    const uint32_t thread = first + static_cast<uint32_t>(__builtin_ctzll(rest));
    worker.exchanged[thread] = worker.posts[thread].value;
    worker.met[thread] = group;
  }
  const uint64_t left = wave.at_exchange & ~group;
  wave.ready |= group;
  wave.at_exchange = 0;
  for (uint64_t rest = left; rest != 0; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(__builtin_ctzll(rest));
    note_arrival(wave, worker.posts[first + lane], 1ull << lane);
  }
}

// The group that continues if no other lane of the block can run: one that has all the lanes it
// waits for. If there is none, the group at the smallest site, without the lanes that diverged.
uint64_t next_group(const Worker& worker, uint32_t wave_index) {
  const Wave& wave = worker.waves[wave_index];
  uint64_t chosen = 0;
  bool chosen_is_whole = false;
  uint32_t chosen_site = 0;
  for (uint64_t rest = wave.at_exchange; rest != 0;) {
    const uint32_t lane = static_cast<uint32_t>(__builtin_ctzll(rest));
    const Post& post = worker.posts[(wave_index << worker.wave_shift) + lane];
    const uint64_t group = group_of(worker, wave_index, post);
    rest &= ~group;
    const bool whole = group == (post.wanted & wave.live);
    const bool better = whole != chosen_is_whole ? whole : post.site < chosen_site;
    if (chosen == 0 || better) {
      chosen = group;
      chosen_is_whole = whole;
      chosen_site = post.site;
    }
  }
  return chosen;
}

}  // namespace

bool resolve_divergence(Worker& worker) {
  for (uint32_t i = 0; i < worker.wave_count; ++i) {
    if (worker.waves[i].at_exchange == 0) continue;
    complete(worker, i, next_group(worker, i));
    return true;
  }
  return false;
}

}  // namespace hipcpu

using namespace hipcpu;

extern "C" Exchange hipcpu_exchange(uint64_t value, uint32_t site, LaneMask wanted) noexcept {
  Worker& worker = *current_worker;
  if (!hipcpu_context.interleaved) interleave(worker);
  const uint32_t thread = hipcpu_context.current;
  const uint32_t wave_index = thread >> worker.wave_shift;
  const uint64_t lane = 1ull << (thread & ((1u << worker.wave_shift) - 1));
  if ((wanted & lane) == 0) {
    hipcpu_fail("a lane called a masked wave operation with a mask that does not contain it");
  }
  Wave& wave = worker.waves[wave_index];
  Post& post = worker.posts[thread];
  post = {value, wanted, site};
  note_arrival(wave, post, lane);
  const uint64_t group = group_of(worker, wave_index, post);
  // Ready lanes have not yet read the result of their last exchange.
  if (group == (wanted & wave.live) && wave.ready == 0) {
    complete(worker, wave_index, group);
    wave.ready &= ~lane;
  } else {
    worker.fiber_of[thread] = worker.running;
    yield_fiber(worker);
  }
  return {&worker.exchanged[wave_index << worker.wave_shift], worker.met[thread]};
}
