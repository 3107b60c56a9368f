#include "regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace hipcpu {

namespace {

constexpr uint8_t kWord = 2;  // most accesses are of four bytes or more

Region* regions;  // in the order of addresses
size_t count;
size_t capacity;
size_t last_found;
uintptr_t shared_begin;  // of the library's __shared__ variables, with the gaps around them
uintptr_t shared_end;

size_t cell_bytes(const Region& region) {
  return (((region.bytes() - 1) >> region.shift) + 1) * sizeof(Cell);
}

// The first piece that begins after the address.
size_t behind(uintptr_t address) {
  size_t low = 0;
  size_t high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (regions[middle].begin <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void erase(size_t index) {
  Region& region = regions[index];
  if (region.cells != nullptr) munmap(region.cells, cell_bytes(region));
  memmove(&region, &region + 1, (--count - index) * sizeof(Region));
  last_found = 0;
}

Cell* map_cells(const Region& region) {
  void* memory = mmap(nullptr, cell_bytes(region), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Cell*>(memory);
}

// Splits each cell of a piece into several with the same contents.
bool split(Region& region, uint8_t shift) {
  Region finer = region;
  finer.shift = shift;
  finer.cells = map_cells(finer);
  if (finer.cells == nullptr) return false;
  const size_t cells = cell_bytes(finer) / sizeof(Cell);
  for (size_t i = 0; i < cells; ++i) finer.cells[i] = region.cells[i << shift >> region.shift];
  munmap(region.cells, cell_bytes(region));
  region = finer;
  return true;
}

}  // namespace

void add_region(Kind kind, const void* memory, size_t bytes, size_t padded_bytes,
                const char* name, bool initialised) {
  if (bytes == 0) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  for (size_t i = behind(begin + bytes - 1); i-- > 0 && regions[i].end > begin;) erase(i);
  if (count == capacity) {
    capacity = capacity == 0 ? 64 : 2 * capacity;
    regions = static_cast<Region*>(realloc(regions, capacity * sizeof(Region)));
    if (regions == nullptr) abort();
  }
  const size_t at = behind(begin);
  memmove(regions + at + 1, regions + at, (count++ - at) * sizeof(Region));
  const bool words = (begin | bytes) % (1 << kWord) == 0;
  regions[at] = {begin, begin + bytes, begin + padded_bytes, kind, initialised,
                 words ? kWord : uint8_t{0}, nullptr, {}};
  snprintf(regions[at].name, sizeof regions[at].name, "%s", name);
  last_found = 0;
}

void remove_region(const void* memory) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  const size_t at = behind(begin);
  if (at != 0 && regions[at - 1].begin == begin) erase(at - 1);
}

void mark_shared(const void* begin, const void* end) {
  shared_begin = reinterpret_cast<uintptr_t>(begin);
  shared_end = reinterpret_cast<uintptr_t>(end);
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t address = regions[i].begin;
    if (address >= shared_begin && address < shared_end) regions[i].kind = Kind::kShared;
  }
}

Region* find_region(uintptr_t address) {
  if (last_found < count) {
    Region& last = regions[last_found];
    if (address >= last.begin && address < last.end) return &last;
  }
  const size_t at = behind(address);
  if (at == 0 || address >= regions[at - 1].end) return nullptr;
  last_found = at - 1;
  return &regions[at - 1];
}

bool is_gap(uintptr_t address) {
  if (address >= shared_begin && address < shared_end) return true;
  const size_t at = behind(address);
  return at != 0 && address < regions[at - 1].padded_end;
}

const Region* nearest_region(uintptr_t address) {
  const size_t at = behind(address);
  if (at == 0) return count == 0 ? nullptr : &regions[0];
  const Region& before = regions[at - 1];
  if (at == count) return &before;
  return regions[at].begin - address < address - before.end ? &regions[at] : &before;
}

Cell* cells_for(Region& region, uintptr_t address, size_t bytes) {
  if (region.cells == nullptr) region.cells = map_cells(region);
  if (region.cells == nullptr) return nullptr;
  const uintptr_t odd = (address - region.begin) | bytes;
  if (odd % (1u << region.shift) != 0 && !split(region, odd % 2 == 0 ? 1 : 0)) return nullptr;
  return region.cells + ((address - region.begin) >> region.shift);
}

void mark_initialised(const void* memory, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  Region* region = find_region(begin);
  if (region == nullptr || region->initialised) return;
  const size_t within = region->end - begin < bytes ? region->end - begin : bytes;
  if (within == region->bytes()) {
    region->initialised = true;
    return;
  }
  Cell* cell = cells_for(*region, begin, within);
  if (cell == nullptr) return;
  for (size_t i = 0; i < within; i += 1u << region->shift) (cell++)->initialised = true;
}

}  // namespace hipcpu
