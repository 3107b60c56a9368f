#include "../runner/mapping.h"

#include <sys/mman.h>

#include "announce.h"
#include "arena.h"
#include "protection.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace {

// Faults the tensors in, so that the first call does not pay for it, and unmaps the gaps between
// them. Both may fail without harm.
void prepare(const Arena& arena, uint32_t slots, int populate) {
  const bool remove_gaps = has_gaps(arena, slots);
  char* base = arena.mapping->base;
  uint64_t cursor = 0;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    for (uint32_t i = 0; i < arena.count; ++i) {
      const auto [low, high] = extent_of(arena, slot, i);
      if (remove_gaps && low > cursor) protect_lent(base + cursor, low - cursor, PROT_NONE);
      if (high > low) madvise(base + low, high - low, populate);
      cursor = high;
    }
  }
  const uint64_t end = arena.mapping->size;
  if (remove_gaps && end > cursor) protect_lent(base + cursor, end - cursor, PROT_NONE);
}

// The tensor that holds the offset, or the nearest one, perhaps the last of the previous slot.
Location nearest(const Tensor* tensors, uint32_t count, uint64_t stride, uint64_t offset,
                 protocol::Place inside, protocol::Place gap) {
  Location best = {gap, -1, 0};
  int64_t shortest = INT64_MAX;
  const int64_t columns[] = {static_cast<int64_t>(offset % stride),
                             static_cast<int64_t>(offset % stride + stride)};
  for (const int64_t column : columns) {
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t from_start = column - static_cast<int64_t>(tensors[i].first);
      const int64_t past_end = from_start - static_cast<int64_t>(tensors[i].size);
      if (from_start >= 0 && past_end < 0) return {inside, i, from_start};
      const int64_t distance = from_start < 0 ? -from_start : past_end;
      if (distance < shortest) {
        shortest = distance;
        best = {gap, i, from_start};
      }
    }
  }
  return best;
}

}  // namespace

bool map_config(Buffers* buffers, const int fds[3]) {
  unmap(buffers);
  if (!map_file(&buffers->block, fds[0], PROT_READ) ||
      !map_file(&buffers->inputs, fds[1], PROT_READ, lent_place()) ||
      !map_file(&buffers->outputs, fds[2], PROT_READ | PROT_WRITE, lent_place())) {
    return false;
  }
  const uint32_t slots = buffers->control()->slots;
  prepare(inputs_of(*buffers), slots, MADV_POPULATE_READ);
  prepare(outputs_of(*buffers), slots, MADV_POPULATE_WRITE);
  announce_config(*buffers);
  return true;
}

bool map_scratch(Buffers* buffers, int fd, size_t size, size_t first, size_t bytes) {
  if (!map_file(&buffers->scratch, fd, PROT_READ | PROT_WRITE, lent_place())) return false;
  if (buffers->scratch.size != size) return false;
  buffers->workspace = buffers->scratch.base + first;
  buffers->workspace_bytes = bytes;
  const Tensor workspace = workspace_of(*buffers);
  prepare(scratch_of(*buffers, workspace), 1, MADV_POPULATE_WRITE);
  announce_workspace(*buffers, bytes);
  return true;
}

void unmap(Buffers* buffers) {
  unmap_file(&buffers->block);
  unmap_file(&buffers->inputs);
  unmap_file(&buffers->outputs);
  unmap_file(&buffers->scratch);
  buffers->workspace = nullptr;
}

Location locate(const Buffers& buffers, const void* pointer) {
  const char* address = static_cast<const char*>(pointer);
  if (holds(buffers.block, address)) return {protocol::kControl, -1, 0};
  if (holds(buffers.inputs, address)) {
    const ControlBlock* block = buffers.control();
    return nearest(block->tensors(), block->inputs, block->input_stride,
                   address - buffers.inputs.base, protocol::kInput, protocol::kInputGap);
  }
  if (holds(buffers.outputs, address)) {
    const ControlBlock* block = buffers.control();
    return nearest(block->tensors() + block->inputs, block->outputs, block->output_stride,
                   address - buffers.outputs.base, protocol::kOutput, protocol::kOutputGap);
  }
  if (holds(buffers.scratch, address)) return {protocol::kWorkspace, -1, 0};
  return {protocol::kElsewhere, -1, 0};
}
