#include "announce.h"

#include <dlfcn.h>

namespace {

using Announce = void (*)(const void* memory, size_t bytes, const char* name, int initialised);

// Null in the usual runtime.
Announce find_announce() {
  return reinterpret_cast<Announce>(dlsym(RTLD_DEFAULT, "hipcpu_sanitizer_buffer"));
}

}  // namespace

void announce_config(const Buffers& buffers) {
  const Announce announce = find_announce();
  if (announce == nullptr) return;
  const ControlBlock* block = buffers.control();
  const Tensor* outputs = block->tensors() + block->inputs;
  for (uint32_t slot = 0; slot < block->slots; ++slot) {
    for (uint32_t i = 0; i < block->inputs; ++i) {
      const Tensor& input = block->tensors()[i];
      announce(buffers.input(i, slot), input.size, input.name, 1);
    }
    for (uint32_t i = 0; i < block->outputs; ++i) {
      announce(buffers.output(i, slot), outputs[i].size, outputs[i].name, 0);
    }
  }
}

void announce_workspace(const Buffers& buffers, size_t bytes) {
  const Announce announce = find_announce();
  if (announce != nullptr) announce(buffers.workspace, bytes, "workspace", 0);
}
