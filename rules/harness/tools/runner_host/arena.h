// Where the tensors of a config lie in the judge's files: slots of tensors, between gaps.
#pragma once
#include "../runner/mapping.h"

struct Arena {
  const Mapping* mapping;
  const Tensor* tensors;
  uint32_t count;
  uint64_t stride;
  uint64_t guard;  // bytes on either side of a tensor that stay mapped
  uint64_t page;
};

// Offsets of whole pages: a tensor with its guards.
struct Extent {
  uint64_t low;
  uint64_t high;
};

// Each gap splits a mapping, and the kernel allows 65530 of them.
constexpr uint64_t kMostGaps = 8192;

inline Extent extent_of(const Arena& arena, uint32_t slot, uint32_t index) {
  const uint64_t first = slot * arena.stride + arena.tensors[index].first;
  const uint64_t end = first + arena.tensors[index].size;
  return {(first - arena.guard) / arena.page * arena.page,
          (end + arena.page - 1) / arena.page * arena.page + arena.guard};
}

inline bool has_gaps(const Arena& arena, uint32_t slots) {
  return uint64_t{slots} * arena.count <= kMostGaps;
}

inline Arena inputs_of(const Buffers& buffers) {
  const ControlBlock* block = buffers.control();
  return {&buffers.inputs, block->tensors(), block->inputs, block->input_stride, 0, block->page};
}

inline Arena outputs_of(const Buffers& buffers) {
  const ControlBlock* block = buffers.control();
  return {&buffers.outputs, block->tensors() + block->inputs, block->outputs,
          block->output_stride, block->page, block->page};
}

inline Tensor workspace_of(const Buffers& buffers) {
  Tensor workspace = {};
  workspace.first = static_cast<uint64_t>(buffers.workspace - buffers.scratch.base);
  workspace.size = buffers.workspace_bytes;
  return workspace;
}

// One slot of one tensor, the workspace.
inline Arena scratch_of(const Buffers& buffers, const Tensor& workspace) {
  const uint64_t page = buffers.control()->page;
  return {&buffers.scratch, &workspace, 1, buffers.scratch.size, page, page};
}
