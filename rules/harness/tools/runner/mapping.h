// The runner's mappings of the judge's shared memory. The control block is a file on every
// platform. Each platform has its own memory for tensors: `map_config`, `map_scratch`, `unmap` and
// `locate` are in runner_host/ and runner_cuda/.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "control_block.h"
#include "files.h"
#include "protocol.h"

// Everything that belongs to the current config.
struct Buffers {
  Mapping block;
  Mapping inputs;
  Mapping outputs;
  Mapping scratch;
  char* workspace;  // within scratch; null without one
  size_t workspace_bytes;

  const ControlBlock* control() const {
    return reinterpret_cast<const ControlBlock*>(block.base);
  }
  char* input(uint32_t index, uint32_t slot) const {
    return inputs.base + slot * control()->input_stride + control()->tensors()[index].first;
  }
  char* output(uint32_t index, uint32_t slot) const {
    const Tensor* tensor = control()->tensors() + control()->inputs + index;
    return outputs.base + slot * control()->output_stride + tensor->first;
  }
};

// The tensor that an address is in.
struct Location {
  protocol::Place place;
  int64_t tensor;
  int64_t offset;  // from the tensor's first byte
};

// Maps the files of LOAD (control block, inputs, outputs) and closes their descriptors. False if
// memory or addresses are used up.
bool map_config(Buffers* buffers, const int fds[3]);

// Maps the workspace of SCRATCH; like map_config.
bool map_scratch(Buffers* buffers, int fd, size_t size, size_t first, size_t bytes);

void unmap(Buffers* buffers);

// Safe in a signal handler.
Location locate(const Buffers& buffers, const void* address);
