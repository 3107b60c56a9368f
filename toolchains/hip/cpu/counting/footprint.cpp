#include "footprint.h"

#include <stdlib.h>

namespace hipcpu {

namespace {

constexpr uint64_t kLeastRoom = 1ull << 12;
constexpr uint64_t kMostRoom = 1ull << 24;  // 128 MB
constexpr uint64_t kRead = 1;
constexpr uint64_t kWritten = 2;

// Sectors by open addressing: the sector's number, shifted by two bits for read and written.
uint64_t* table;
uint64_t room;
uint64_t used;
Footprint sums = {0, 0, true};

uint64_t* slot_of(uint64_t* slots, uint64_t count, uint64_t sector) {
  uint64_t at = (sector * 0x9e3779b97f4a7c15ull) >> 32;
  for (;; ++at) {
    uint64_t& slot = slots[at & (count - 1)];
    if (slot == 0 || slot >> 2 == sector) return &slot;
  }
}

bool grow() {
  const uint64_t count = room == 0 ? kLeastRoom : 2 * room;
  if (count > kMostRoom) return false;
  uint64_t* slots = static_cast<uint64_t*>(calloc(count, sizeof *slots));
  if (slots == nullptr) return false;
  for (uint64_t i = 0; i < room; ++i) {
    if (table[i] != 0) *slot_of(slots, count, table[i] >> 2) = table[i];
  }
  free(table);
  table = slots;
  room = count;
  return true;
}

}  // namespace

void begin_footprint() {
  free(table);
  table = nullptr;
  room = 0;
  used = 0;
  sums = {0, 0, true};
}

void note_sector(uint64_t sector, Operation operation) {
  if (2 * used >= room && !grow()) {
    sums.whole = false;
    return;
  }
  uint64_t& slot = *slot_of(table, room, sector);
  if (slot == 0) {
    slot = sector << 2;
    ++used;
  }
  const uint64_t done = operation == Operation::kLoad    ? kRead
                        : operation == Operation::kStore ? kWritten
                                                         : kRead | kWritten;
  sums.read += (done & ~slot & kRead) != 0;
  sums.written += (done & ~slot & kWritten) != 0;
  slot |= done;
}

Footprint footprint() { return sums; }

}  // namespace hipcpu
