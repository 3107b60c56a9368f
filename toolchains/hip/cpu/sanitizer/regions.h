// The memory that a kernel may use, and what is known of each piece of it.
#pragma once

#include "clocks.h"

namespace hipcpu {

enum class Kind : uint8_t { kTensor, kAllocation, kVariable, kShared, kDynamicShared };

constexpr uint32_t kReaders = 3;

/// What has been done to a few neighbouring bytes.
struct Cell {
  Stamp written;
  Stamp read[kReaders];  // of those who read since: the last, one more of its wave, one of another
  uint32_t released;     // the time that was published here
  bool initialised;
};

struct Region {
  uintptr_t begin;
  uintptr_t end;
  uintptr_t padded_end;  // up to here nothing else lies
  Kind kind;
  bool initialised;      // as a whole, before any kernel ran
  uint8_t shift;         // a cell stands for 1 << shift bytes
  Cell* cells;           // null until first needed, and where memory is out
  char name[64];

  bool shared() const { return kind == Kind::kShared || kind == Kind::kDynamicShared; }
  size_t bytes() const { return end - begin; }
};

/// Forgets what lay there before. An empty piece is not remembered.
void add_region(Kind kind, const void* memory, size_t bytes, size_t padded_bytes,
                const char* name, bool initialised);
void remove_region(const void* memory);
/// Pieces within the image of a library that are __shared__ become so.
void mark_shared(const void* begin, const void* end);

Region* find_region(uintptr_t address);
/// Whether an address outside of all pieces is in a gap that keeps them apart.
bool is_gap(uintptr_t address);
/// The piece nearest to an address outside of all; null for none.
const Region* nearest_region(uintptr_t address);

/// The cells of a piece, such that an access of these bytes touches whole ones.
Cell* cells_for(Region& region, uintptr_t address, size_t bytes);
void mark_initialised(const void* memory, size_t bytes);

}  // namespace hipcpu
