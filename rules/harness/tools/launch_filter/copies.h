// Tells by their names which of PyTorch's kernels only copy and fill.
#pragma once

enum Copying {
  kComputes,  // or may compute
  kMoves,     // copies elements as they are, or fills with one value
  kConverts,  // copies elements into another type
};

// The kind of a kernel of PyTorch, by its mangled name.
//
// The name must have one of PyTorch's loops over elements, and that loop must call a copy or a
// fill. A mangled name has both in one place; the rest of it does not matter.
Copying copying(const char* name);
