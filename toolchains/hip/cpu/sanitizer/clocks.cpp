#include "clocks.h"

#include <stdlib.h>
#include <string.h>

namespace hipcpu {

Now now;

namespace {

constexpr uint32_t kLanes = 64;

// known[a][b]: the number of lane b's exchanges that lane a knows of. known[a][a] is the number of
// lane a's own, from 1.
struct Meetings {
  uint32_t serial;  // of the block that this is about
  uint32_t known[kLanes][kLanes];
};
Meetings waves[kMaxWaves];

uint32_t acquired[kMaxThreads];
bool any_acquired;

// An atomic write after a fence.
struct Release {
  uint32_t time;
  uint32_t device_fence;  // the last one before this, in its block; 0 for none
  uint32_t block_fence;
  uint32_t thread;
  uint32_t epoch;
};
Release* releases;  // of this launch, block after block
uint32_t release_count;
uint32_t release_capacity;
uint32_t* first_release;  // by block of this launch
uint64_t first_capacity;
uint32_t device_fence;
uint32_t block_fence;

uint32_t lane_of(uint32_t thread) { return thread & ((1u << now.wave_shift) - 1); }

bool same_wave(uint32_t a, uint32_t b) { return a >> now.wave_shift == b >> now.wave_shift; }

uint32_t own_clock(uint32_t thread) {
  const Meetings& wave = waves[thread >> now.wave_shift];
  if (wave.serial != now.serial) return 1;
  return wave.known[lane_of(thread)][lane_of(thread)];
}

bool lanes_met(const Stamp& access, uint32_t thread) {
  const Meetings& wave = waves[thread >> now.wave_shift];
  if (!same_wave(access.thread, thread) || wave.serial != now.serial) return false;
  return wave.known[lane_of(thread)][lane_of(access.thread)] >= access.clock;
}

// Whether the access was published by then: its block released something after both the access and
// a fence.
bool was_published(const Stamp& access, uint32_t until) {
  const bool own_block = access.serial == now.serial;
  const uint32_t block = access.serial - now.launch - 1;
  const uint32_t end = own_block ? release_count : first_release[block + 1];
  for (uint32_t i = first_release[block]; i < end; ++i) {
    const Release& release = releases[i];
    if (release.time > until) return false;
    const uint32_t fence = own_block ? release.block_fence : release.device_fence;
    const bool precedes = access.epoch < release.epoch || same_wave(access.thread, release.thread);
    if (precedes && access.time < fence) return true;
  }
  return false;
}

}  // namespace

void begin_launch(const Job& job) {
  static uint32_t last_serial;
  now.launch = last_serial;
  last_serial += static_cast<uint32_t>(job.blocks);
  release_count = 0;
  if (job.blocks + 1 > first_capacity) {
    first_capacity = job.blocks + 1;
    first_release = static_cast<uint32_t*>(realloc(first_release, first_capacity * 4));
    if (first_release == nullptr) abort();
  }
}

void begin_block(uint64_t block, uint32_t wave_shift) {
  now.serial = now.launch + static_cast<uint32_t>(block) + 1;
  now.epoch = 1;
  now.wave_shift = wave_shift;
  first_release[block] = release_count;
  device_fence = block_fence = 0;
  if (any_acquired) memset(acquired, 0, sizeof acquired);
  any_acquired = false;
}

void pass_barrier(uint32_t threads) {
  ++now.epoch;
  if (!any_acquired) return;
  uint32_t latest = 0;
  for (uint32_t i = 0; i < threads; ++i) latest = acquired[i] > latest ? acquired[i] : latest;
  for (uint32_t i = 0; i < threads; ++i) acquired[i] = latest;
}

void meet_lanes(uint32_t index, uint64_t lanes) {
  Meetings& wave = waves[index];
  if (wave.serial != now.serial) {
    wave.serial = now.serial;
    memset(wave.known, 0, sizeof wave.known);
    for (uint32_t lane = 0; lane < kLanes; ++lane) wave.known[lane][lane] = 1;
  }
  const uint32_t first = index << now.wave_shift;
  uint32_t joined[kLanes] = {};
  uint32_t latest = 0;
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(__builtin_ctzll(rest));
    const uint32_t* known = wave.known[lane];
    for (uint32_t i = 0; i < kLanes; ++i) joined[i] = known[i] > joined[i] ? known[i] : joined[i];
    if (acquired[first + lane] > latest) latest = acquired[first + lane];
  }
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(__builtin_ctzll(rest));
    memcpy(wave.known[lane], joined, sizeof joined);
    ++wave.known[lane][lane];
    acquired[first + lane] = latest;
  }
}

void pass_fence(bool device) {
  block_fence = ++now.time;
  if (device) device_fence = block_fence;
}

uint32_t release() {
  if (block_fence == 0) return 0;
  const uint32_t thread = hipcpu_context.current;
  const uint32_t begin = first_release[now.serial - now.launch - 1];
  if (release_count > begin) {
    const Release& last = releases[release_count - 1];
    const bool same_fences = last.device_fence == device_fence && last.block_fence == block_fence;
    if (same_fences && last.thread == thread && last.epoch == now.epoch) return last.time;
  }
  if (release_count == release_capacity) {
    release_capacity = release_capacity == 0 ? 1024 : 2 * release_capacity;
    releases = static_cast<Release*>(realloc(releases, release_capacity * sizeof(Release)));
    if (releases == nullptr) abort();
  }
  releases[release_count++] = {++now.time, device_fence, block_fence, thread, now.epoch};
  return now.time;
}

void acquire(uint32_t time) {
  uint32_t& mine = acquired[hipcpu_context.current];
  if (time <= mine) return;
  mine = time;
  any_acquired = true;
}

Stamp stamp(uint32_t code, bool atomic) {
  const uint32_t thread = hipcpu_context.current;
  return {now.serial, now.epoch, own_clock(thread), now.time, code,
          static_cast<uint16_t>(thread), atomic};
}

bool comes_before(const Stamp& access) {
  if (access.serial <= now.launch) return true;  // an earlier launch, or no access at all
  const uint32_t thread = hipcpu_context.current;
  if (access.serial == now.serial) {
    if (access.thread == thread || access.epoch < now.epoch) return true;
    if (lanes_met(access, thread)) return true;
  }
  return was_published(access, acquired[thread]);
}

}  // namespace hipcpu
