#include "candidate.h"

#include <dlfcn.h>
#include <stdio.h>

namespace {

bool push_pointer(Arguments* arguments, const void* pointer) {
  return push_word(arguments, reinterpret_cast<int64_t>(pointer));
}

bool push_scalar(Arguments* arguments, const Scalar& scalar) {
  if (scalar.is_float == 0) return push_word(arguments, scalar.integer);
  return push_float(arguments, static_cast<float>(scalar.real));
}

bool push_dims(Arguments* arguments, const ControlBlock& block) {
  bool fits = true;
  for (uint32_t i = 0; i < block.dims; ++i) {
    fits = fits && push_word(arguments, block.dim_list()[i].value);
  }
  return fits;
}

}  // namespace

bool load(Candidate* candidate) {
  candidate->library = dlopen(candidate->path, RTLD_NOW | RTLD_LOCAL);
  return candidate->library != nullptr;
}

bool resolve(Candidate* candidate, const ControlBlock& block) {
  for (const char* symbol : block.symbols) {
    candidate->entry = dlsym(candidate->library, symbol);
    if (candidate->entry == nullptr) continue;
    char name[sizeof block.symbols[0] + sizeof "_workspace"];
    snprintf(name, sizeof name, "%s_workspace", symbol);
    candidate->workspace_size = dlsym(candidate->library, name);
    return true;
  }
  return false;
}

int64_t wanted_workspace(const Candidate& candidate, const ControlBlock& block) {
  if (candidate.workspace_size == nullptr) return 0;
  Arguments arguments = {};
  push_dims(&arguments, block);
  return call(candidate.workspace_size, &arguments);
}

bool assemble(const Candidate& candidate, const ControlBlock& block, const void* const* tensors,
              const void* workspace, const void* stream, Arguments* arguments) {
  *arguments = {};
  bool fits = true;
  for (uint32_t i = 0; i < block.inputs + block.outputs; ++i) {
    fits = fits && push_pointer(arguments, tensors[i]);
  }
  for (uint32_t i = 0; i < block.scalars; ++i) {
    fits = fits && push_scalar(arguments, block.scalar_list()[i]);
  }
  fits = fits && push_dims(arguments, block);
  if (candidate.workspace_size != nullptr) fits = fits && push_pointer(arguments, workspace);
  return fits && push_pointer(arguments, stream);
}
