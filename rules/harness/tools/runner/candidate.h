// The candidate's library, and the arguments of its entry.
#pragma once
#include <stdint.h>

#include "call.h"
#include "control_block.h"

constexpr uint32_t kMostTensors = 16;  // of inputs, and of outputs; the judge checks both

struct Candidate {
  const char* path;
  void* library;
  void* entry;           // of the current config
  void* workspace_size;  // null if the candidate needs no workspace
};

// Loads the library. On false, dlerror has the reason.
bool load(Candidate* candidate);

// Finds the entry: the first of the block's names that the library defines. False if there is none.
bool resolve(Candidate* candidate, const ControlBlock& block);

// Bytes of workspace that the candidate needs for these dims.
int64_t wanted_workspace(const Candidate& candidate, const ControlBlock& block);

// Inputs, outputs, scalars, dims, workspace if needed, stream. `tensors` are the addresses of
// inputs and outputs, in order. False if there are more arguments than a call can have.
bool assemble(const Candidate& candidate, const ControlBlock& block, const void* const* tensors,
              const void* workspace, const void* stream, Arguments* arguments);
