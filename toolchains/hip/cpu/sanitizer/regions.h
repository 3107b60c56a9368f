// The pieces of memory that a kernel may use, and the state of each.
#pragma once

#include "clocks.h"

namespace hipcpu {

enum class Kind : uint8_t { kTensor, kAllocation, kVariable, kShared, kDynamicShared };

constexpr uint32_t kReaders = 3;

/// The accesses to a few neighbouring bytes.
struct Cell {
  Stamp written;
  Stamp read[kReaders];  // reads since: the last, another of its wave, one of another wave
  uint32_t released;     // the time that was published here
  bool initialised;
};

struct Region {
  uintptr_t begin;
  uintptr_t end;
  uintptr_t padded_end;  // the next piece begins here or later
  Kind kind;
  bool initialised;      // as a whole, before any kernel ran
  uint8_t shift;         // a cell covers 1 << shift bytes
  Cell* cells;           // null until first needed, or if there is no memory
  char name[64];

  bool shared() const { return kind == Kind::kShared || kind == Kind::kDynamicShared; }
  size_t bytes() const { return end - begin; }
};

/// Replaces the pieces that were there before. An empty piece is not kept.
void add_region(Kind kind, const void* memory, size_t bytes, size_t padded_bytes,
                const char* name, bool initialised);
void remove_region(const void* memory);
/// Marks the pieces of a library's image that are __shared__.
void mark_shared(const void* begin, const void* end);

Region* find_region(uintptr_t address);
/// Whether an address outside of all pieces is in a gap between them.
bool is_gap(uintptr_t address);
/// The piece nearest to an address outside of all; null for none.
const Region* nearest_region(uintptr_t address);

/// The cells of a piece, such that an access of these bytes touches whole ones.
Cell* cells_for(Region& region, uintptr_t address, size_t bytes);
void mark_initialised(const void* memory, size_t bytes);

}  // namespace hipcpu
