// The judge's shared memory, as the runner maps it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "control_block.h"
#include "protocol.h"

// One mapped descriptor.
struct Mapping {
  char* base;
  size_t size;
};

// Everything that belongs to the config in force.
struct Buffers {
  Mapping block;
  Mapping inputs;   // read-only
  Mapping outputs;  // read and write
  Mapping scratch;  // read and write
  char* workspace;  // within scratch; null without one

  const ControlBlock* control() const {
    return reinterpret_cast<const ControlBlock*>(block.base);
  }
  char* input(uint32_t index, uint32_t slot) const;
  char* output(uint32_t index, uint32_t slot) const;
};

// Where an address lies.
struct Location {
  protocol::Place place;
  int64_t tensor;
  int64_t offset;  // from the tensor's first byte
};

// Maps the descriptors of LOAD and takes the gaps between tensors out. False when the kernel
// refuses, which means that the address space is used up. The descriptors are closed.
bool map_config(Buffers* buffers, const int fds[3]);

// Maps the workspace of SCRATCH; like map_config.
bool map_scratch(Buffers* buffers, int fd, size_t size, size_t first, size_t bytes);

void unmap(Buffers* buffers);

// Safe in a signal handler.
Location locate(const Buffers& buffers, const void* address);
