#include "access.h"

#include <stdio.h>
#include <string.h>

namespace hipcpu {

namespace {

constexpr size_t kMostStack = 16 << 20;  // of the host's thread, which holds kernels' arguments
constexpr size_t kLargestValue = 16;

// A write over another thread's in the same interval. Whether it changed the value is known once
// the kernel goes on.
struct Overwrite {
  bool pending;
  Access access;
  Caller caller;
  Stamp before;
  uint3 block;
  uint3 thread;
  uint32_t serial;
  char name[96];
  char old[kLargestValue];
};
Overwrite overwrite;

struct Text {
  char text[128];
};

Text describe(const Region& region) {
  Text out = {};
  const char* kinds[] = {"", "memory of hipMalloc", "variable ", "__shared__ ",
                         "dynamic shared memory"};
  const char* kind = kinds[static_cast<int>(region.kind)];
  const bool named = region.name[0] != '\0';
  snprintf(out.text, sizeof out.text, "%s%s%s%s (%zu bytes)", kind, named ? "'" : "", region.name,
           named ? "'" : "", region.bytes());
  return out;
}

Text who(const uint3& block, const uint3& thread) {
  Text out = {};
  snprintf(out.text, sizeof out.text, "block (%u,%u,%u) thread (%u,%u,%u)", block.x, block.y,
           block.z, thread.x, thread.y, thread.z);
  return out;
}

Text current_thread() { return who(hipcpu_context.block, hipcpu_context.thread); }

Text thread_of(const Stamp& stamp, uint32_t own_serial) {
  const uint3& dim = hipcpu_context.block_dim;
  const uint3& grid = hipcpu_context.grid_dim;
  const uint32_t t = stamp.thread;
  const uint3 thread = {t % dim.x, t / dim.x % dim.y, t / dim.x / dim.y};
  if (stamp.serial == own_serial) {
    Text out = {};
    snprintf(out.text, sizeof out.text, "thread (%u,%u,%u)", thread.x, thread.y, thread.z);
    return out;
  }
  const uint32_t b = stamp.serial - now.launch - 1;
  return who({b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y}, thread);
}

const char* verb(const Access& access) {
  if (access.atomic) return access.write ? "atomic or volatile write" : "atomic or volatile read";
  return access.write ? "write" : "read";
}

// Memory that is not checked: stacks, the runtime's memory, and the compiler's data in the library.
bool is_private(uintptr_t address) {
  const uintptr_t context = reinterpret_cast<uintptr_t>(&hipcpu_context);
  if (address - context < sizeof hipcpu_context) return true;
  const Worker& worker = *current_worker;
  if (address - reinterpret_cast<uintptr_t>(&worker) < sizeof worker) return true;
  if (is_stack(worker, reinterpret_cast<const void*>(address))) return true;
  if (address - reinterpret_cast<uintptr_t>(worker.host_stack) < kMostStack) return true;
  return image.holds(address) && !is_gap(address);
}

[[noreturn]] void end_kernel() { hipcpu_fail("the sanitizer ended the kernel"); }

[[noreturn]] void report_address(const Access& access, const Caller& caller) {
  const Region* region = nearest_region(access.address);
  const PlaceText place = place_of(caller);
  const Text thread = current_thread();
  if (region == nullptr) {
    found("OUT_OF_BOUNDS", place.text, "", "%s of %zu bytes outside all memory of the device, by %s",
          verb(access), access.bytes, thread.text);
  } else {
    const bool before = access.address < region->begin;
    const bool across = !before && access.address < region->end;
    const size_t distance =
        before ? region->begin - access.address : across ? 0 : access.address - region->end;
    const char* side = before ? "before" : across ? "across the end of" : "past the end of";
    const Text what = describe(*region);
    found("OUT_OF_BOUNDS", place.text, "", "%s of %zu bytes, %zu bytes %s %s, by %s", verb(access),
          access.bytes, distance, side, what.text, thread.text);
  }
  end_kernel();
}

void report_race(const Access& access, const Caller& caller, const Stamp& other, bool other_wrote,
                 const char* name, const Text& thread, uint32_t serial) {
  const Text other_thread = thread_of(other, serial);
  const bool same_block = other.serial == serial;
  found("DATA_RACE", place_of(caller).text, place_of(other.code).text,
        "%s of %zu bytes of %s by %s, and %s by %s at {other}: %s", verb(access), access.bytes,
        name, thread.text, other_wrote ? "write" : "read", other_thread.text,
        same_block ? "no barrier orders the two" : "nothing orders the two blocks");
}

bool conflicts(const Stamp& other, const Access& access, bool shared) {
  if (other.serial == 0 || (shared && other.serial != now.serial)) return false;
  if (other.atomic && access.atomic) return false;
  return !comes_before(other);
}

bool concurrent(const Stamp& other, bool shared) {
  if (other.serial == 0 || (shared && other.serial != now.serial)) return false;
  return !comes_before(other);
}

void note_read(Cell& cell, const Stamp& mine, bool shared) {
  if (concurrent(cell.read[0], shared) && cell.read[0].thread != mine.thread) {
    const bool same_wave =
        cell.read[0].serial == mine.serial &&
        cell.read[0].thread >> now.wave_shift == mine.thread >> now.wave_shift;
    cell.read[same_wave ? 1 : 2] = cell.read[0];
  }
  cell.read[0] = mine;
}

void note_write(Cell& cell, const Stamp& mine) {
  cell.written = mine;
  cell.initialised = true;
  for (Stamp& read : cell.read) read.serial = 0;
}

void remember_overwrite(const Access& access, const Caller& caller, const Stamp& before,
                        const Region& region) {
  overwrite.pending = true;
  overwrite.access = access;
  overwrite.caller = caller;
  overwrite.before = before;
  overwrite.block = hipcpu_context.block;
  overwrite.thread = hipcpu_context.thread;
  overwrite.serial = now.serial;
  memcpy(overwrite.name, describe(region).text, sizeof overwrite.name - 1);
  memcpy(overwrite.old, reinterpret_cast<const void*>(access.address), access.bytes);
}

void check_races(const Access& access, const Caller& caller, Region& region, Cell* cells,
                 size_t count) {
  const bool shared = region.shared();
  const Stamp mine = stamp(image.offset(caller.code), access.atomic);
  for (size_t i = 0; i < count; ++i) {
    Cell& cell = cells[i];
    if (conflicts(cell.written, access, shared)) {
      const bool plain = access.write && !access.atomic && !cell.written.atomic;
      if (plain && access.bytes <= kLargestValue && access.address + access.bytes <= region.end) {
        remember_overwrite(access, caller, cell.written, region);
      } else {
        report_race(access, caller, cell.written, true, describe(region).text, current_thread(),
                    now.serial);
      }
    }
    for (uint32_t r = 0; access.write && r < kReaders; ++r) {
      if (!conflicts(cell.read[r], access, shared)) continue;
      report_race(access, caller, cell.read[r], false, describe(region).text, current_thread(),
                  now.serial);
    }
    if (access.write) {
      note_write(cell, mine);
    } else {
      note_read(cell, mine, shared);
    }
  }
}

// A read of several values of which some are initialised may be a copy of a structure with gaps.
void check_initialised(const Access& access, const Caller& caller, const Region& region,
                       const Cell* cells, size_t count) {
  if (region.initialised && !region.shared()) return;
  for (size_t i = 0; i < count; ++i) {
    const bool written = cells[i].written.serial == now.serial;
    if (written || (cells[i].initialised && !region.shared())) return;
  }
  found("UNINITIALISED", place_of(caller).text, "",
        "read of %zu bytes at offset %zu of %s, which %s has written, by %s", access.bytes,
        static_cast<size_t>(access.address - region.begin), describe(region).text,
        region.shared() ? "no thread of the block" : "no thread", current_thread().text);
}

}  // namespace

void settle_last_write() {
  if (!overwrite.pending) return;
  overwrite.pending = false;
  const void* written = reinterpret_cast<const void*>(overwrite.access.address);
  if (memcmp(written, overwrite.old, overwrite.access.bytes) == 0) return;
  report_race(overwrite.access, overwrite.caller, overwrite.before, true, overwrite.name,
              who(overwrite.block, overwrite.thread), overwrite.serial);
}

Cell* check(const Access& access, const Caller& caller) {
  if (!hipcpu_context.in_kernel || access.bytes == 0) return nullptr;
  settle_last_write();
  Region* region = find_region(access.address);
  if (region == nullptr) {
    if (is_private(access.address)) return nullptr;
    report_address(access, caller);
  }
  if (access.bytes > region->end - access.address) report_address(access, caller);
  Cell* cells = cells_for(*region, access.address, access.bytes);
  if (cells == nullptr) return nullptr;
  const size_t count = ((access.bytes - 1) >> region->shift) + 1;
  if (!access.write) check_initialised(access, caller, *region, cells, count);
  check_races(access, caller, *region, cells, count);
  return cells;
}

}  // namespace hipcpu
