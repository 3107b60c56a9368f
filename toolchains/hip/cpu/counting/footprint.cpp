#include "footprint.h"

#include <stdlib.h>

namespace hipcpu {

namespace {

constexpr uint64_t kLeastRoom = 1ull << 12;
constexpr uint64_t kMostRoom = 1ull << 23;  // 128 MB
constexpr uint64_t kRead = 1;
constexpr uint64_t kWritten = 2;

struct Sector {
  uint64_t number_and_done;  // shifted by two bits, for read and written; 0 for an empty slot
  uint32_t loaded_in;        // the last block that loaded it, counted from 1
  uint32_t accessed_in;
};

Sector* table;               // open addressing
uint64_t room;
uint64_t used;
uint32_t block;
uint64_t accessed;           // by this block
Footprint sums = {0, 0, 0, 0, true};

Sector* slot_of(Sector* slots, uint64_t count, uint64_t number) {
  uint64_t at = (number * 0x9e3779b97f4a7c15ull) >> 32;
  for (;; ++at) {
    Sector& slot = slots[at & (count - 1)];
    if (slot.number_and_done == 0 || slot.number_and_done >> 2 == number) return &slot;
  }
}

bool grow() {
  const uint64_t count = room == 0 ? kLeastRoom : 2 * room;
  if (count > kMostRoom) return false;
  Sector* slots = static_cast<Sector*>(calloc(count, sizeof *slots));
  if (slots == nullptr) return false;
  for (uint64_t i = 0; i < room; ++i) {
    const uint64_t number = table[i].number_and_done >> 2;
    if (table[i].number_and_done != 0) *slot_of(slots, count, number) = table[i];
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
  block = 1;
  accessed = 0;
  sums = {0, 0, 0, 0, true};
}

void begin_block_footprint() {
  ++block;
  accessed = 0;
}

void note_sector(uint64_t number, Operation operation) {
  if (2 * used >= room && !grow()) {
    sums.whole = false;
    return;
  }
  Sector& slot = *slot_of(table, room, number);
  const bool first = slot.number_and_done == 0;
  if (first) {
    slot.number_and_done = number << 2;
    ++used;
  }
  const uint64_t done = operation == Operation::kLoad    ? kRead
                        : operation == Operation::kStore ? kWritten
                                                         : kRead | kWritten;
  sums.read += first && (done & kRead) != 0;
  sums.written += (done & ~slot.number_and_done & kWritten) != 0;
  slot.number_and_done |= done;
  if (operation == Operation::kLoad && slot.loaded_in != block) {
    slot.loaded_in = block;
    ++sums.read_by_blocks;
  }
  if (slot.accessed_in == block) return;
  slot.accessed_in = block;
  if (++accessed > sums.most_of_block) sums.most_of_block = accessed;
}

Footprint footprint() { return sums; }

}  // namespace hipcpu
