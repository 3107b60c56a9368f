// Each sector that is followed has a mark at the time of its last access, and a tree of sums says
// how many marks are later than one. If there are too many sectors, half of them are followed no
// longer: those whose hash has one more bit set. Time is counted anew when it runs out.
#include "reuse.h"

#include <string.h>

namespace hipcpu {

namespace {

constexpr uint32_t kMostFollowed = 1u << 16;
constexpr uint32_t kSlots = 2 * kMostFollowed;
constexpr uint32_t kTimes = 2 * kMostFollowed;
constexpr uint32_t kKinds = 3;

struct Followed {
  uint64_t sector;
  uint32_t time;   // of its last access; 0 for an empty slot
  uint32_t block;  // whose that was
};

Followed slots[kSlots];           // open addressing
Followed kept[kMostFollowed];     // while slots are filled anew
uint32_t slot_at[kTimes + 1];     // by time: whose mark that is, plus one; 0 for none
uint32_t later[kTimes + 1];       // sums of marks, as a Fenwick tree
uint32_t latest;
uint32_t followed;
uint32_t block;
uint32_t shift;                   // one in 1 << shift sectors is followed
Reuse all_sums[kKinds];

uint64_t hashed(uint64_t sector) {
  uint64_t value = (sector + 1) * 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93ull;
  return value ^ (value >> 32);
}

bool is_followed(uint64_t hash) { return (hash & ((1ull << shift) - 1)) == 0; }

uint32_t slot_of(uint64_t sector, uint64_t hash) {
  uint32_t at = static_cast<uint32_t>(hash >> 40) % kSlots;
  while (slots[at].time != 0 && slots[at].sector != sector) at = (at + 1) % kSlots;
  return at;
}

void add_mark(uint32_t time, uint32_t slot) {
  slot_at[time] = slot + 1;
  for (uint32_t at = time; at <= kTimes; at += at & -at) ++later[at];
}

void remove_mark(uint32_t time) {
  slot_at[time] = 0;
  for (uint32_t at = time; at <= kTimes; at += at & -at) --later[at];
}

uint32_t marks_until(uint32_t time) {
  uint32_t sum = 0;
  for (uint32_t at = time; at != 0; at -= at & -at) sum += later[at];
  return sum;
}

// Keeps the sectors that are still followed, in the order of their last accesses.
void begin_time_anew() {
  uint32_t count = 0;
  for (uint32_t time = 1; time <= latest; ++time) {
    if (slot_at[time] == 0) continue;
    const Followed& one = slots[slot_at[time] - 1];
    if (is_followed(hashed(one.sector))) kept[count++] = one;
  }
  memset(slots, 0, sizeof slots);
  memset(slot_at, 0, sizeof slot_at);
  memset(later, 0, sizeof later);
  followed = latest = count;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t slot = slot_of(kept[i].sector, hashed(kept[i].sector));
    slots[slot] = {kept[i].sector, i + 1, kept[i].block};
    add_mark(i + 1, slot);
  }
}

uint32_t entry_of(uint64_t distance) {
  const uint32_t bits = distance == 0 ? 0 : 64 - static_cast<uint32_t>(__builtin_clzll(distance));
  return bits < kDistances ? bits : kDistances - 1;
}

}  // namespace

void begin_reuse() {
  if (latest != 0) {
    memset(slots, 0, sizeof slots);
    memset(slot_at, 0, sizeof slot_at);
    memset(later, 0, sizeof later);
  }
  memset(all_sums, 0, sizeof all_sums);
  latest = followed = shift = 0;
  block = 1;
}

void begin_block_reuse() { ++block; }

void note_reuse(uint64_t sector, Operation operation) {
  const uint64_t hash = hashed(sector);
  if (!is_followed(hash)) return;
  Reuse& sums = all_sums[static_cast<uint32_t>(operation)];
  uint32_t slot = slot_of(sector, hash);
  if (slots[slot].time == 0) {
    while (followed == kMostFollowed) {
      ++shift;
      begin_time_anew();
      if (!is_followed(hash)) return;
    }
    sums.first += 1ull << shift;
    ++followed;
    slot = slot_of(sector, hash);
  } else {
    const Followed& one = slots[slot];
    const uint64_t distance = static_cast<uint64_t>(followed - marks_until(one.time)) << shift;
    (one.block == block ? sums.within : sums.across)[entry_of(distance)] += 1ull << shift;
    remove_mark(one.time);
    slots[slot].time = 0;
  }
  slots[slot] = {sector, ++latest, block};
  add_mark(latest, slot);
  if (latest == kTimes) begin_time_anew();
}

const Reuse& reuse(Operation operation) { return all_sums[static_cast<uint32_t>(operation)]; }

uint64_t reuse_one_in() { return 1ull << shift; }

}  // namespace hipcpu
