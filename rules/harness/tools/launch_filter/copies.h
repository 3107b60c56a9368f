// Which of PyTorch's kernels only copy and fill, by their names.
#pragma once

enum Copying {
  kComputes,  // or may
  kMoves,     // copies elements as they are, or fills with one value
  kConverts,  // copies elements into another type
};

// What a kernel of PyTorch does, by its mangled name.
//
// The name must have one of PyTorch's loops over elements, and what this loop calls must be a
// copy or a fill. A mangled name says both in one place, so what else the name holds is no matter.
Copying copying(const char* name);
