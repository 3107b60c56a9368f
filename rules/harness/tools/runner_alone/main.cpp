// Calls a candidate once, in its own process, with a device allocation for each tensor, so
// that a tool that watches a program's memory, such as compute-sanitizer, can check it.
//
//   hip-alone BLOCK INPUTS CANDIDATE LIBRARY...
//
// BLOCK is a control block of one slot, and INPUTS holds its inputs, each from its `first` on.
// Prints lines to standard output: `kabuild-alone ready`, then for each tensor `kabuild-alone
// memory NAME ADDRESS BYTES`, and in the end `kabuild-alone done` or `kabuild-alone fault KIND
// VALUE`. The candidate shares this process and may forge all of them.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../runner/candidate.h"
#include "../runner/clock.h"
#include "../runner/control_block.h"
#include "../runner/files.h"
#include "../runner_cuda/driver.h"

namespace {

constexpr int kUsage = 2;

template <typename... Values>
void say(const char* format, Values... values) {
  printf("kabuild-alone ");
  printf(format, values...);
  printf("\n");
  fflush(stdout);
}

// Ends the process without running exit handlers that the candidate may have registered.
[[noreturn]] void fail(const char* kind, int64_t value) {
  say("fault %s %lld", kind, static_cast<long long>(value));
  _exit(1);
}

// One allocation, of at least a byte.
void* allocate(const char* name, size_t bytes) {
  cuda::Address address = 0;
  if (cuda::driver().memory_allocate(&address, bytes == 0 ? 1 : bytes) != cuda::kSuccess) {
    fail("memory", static_cast<int64_t>(bytes));
  }
  say("memory %s %llx %zu", name, address, bytes);
  return reinterpret_cast<void*>(address);
}

void* allocate_input(const Tensor& tensor, const Mapping& inputs) {
  void* memory = allocate(tensor.name, tensor.size);
  const cuda::Address address = reinterpret_cast<cuda::Address>(memory);
  if (tensor.size != 0 && cuda::driver().copy_to_device(address, inputs.base + tensor.first,
                                                        tensor.size) != cuda::kSuccess) {
    fail("memory", static_cast<int64_t>(tensor.size));
  }
  return memory;
}

void call_once(const Candidate& candidate, const ControlBlock& block, const Mapping& inputs) {
  const void* tensors[2 * kMostTensors];
  for (uint32_t i = 0; i < block.inputs + block.outputs; ++i) {
    const Tensor& tensor = block.tensors()[i];
    // Outputs stay uninitialised, so that a kernel that reads one is detected.
    const bool input = i < block.inputs;
    tensors[i] = input ? allocate_input(tensor, inputs) : allocate(tensor.name, tensor.size);
  }
  const int64_t wanted = wanted_workspace(candidate, block);
  if (wanted < 0) fail("memory", wanted);
  void* workspace = wanted > 0 ? allocate("workspace", static_cast<size_t>(wanted)) : nullptr;
  Arguments arguments;
  if (!assemble(candidate, block, tensors, workspace, stream(), &arguments)) fail("usage", 0);
  const int called = static_cast<int>(call(candidate.entry, &arguments));
  if (called != 0) fail("launch", called);
  int64_t elapsed_ns = 0;
  const int ended = stop_clock(&elapsed_ns);
  if (ended != cuda::kSuccess) fail("launch", ended);
}

bool map(Mapping* mapping, const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd >= 0 && map_file(mapping, fd, PROT_READ);
}

}  // namespace

int main(int argc, char** argv) {
  Mapping block_file = {};
  Mapping inputs = {};
  if (argc < 4 || !map(&block_file, argv[1]) || !map(&inputs, argv[2])) return kUsage;
  const ControlBlock& block = *reinterpret_cast<const ControlBlock*>(block_file.base);
  if (block.magic != kBlockMagic || block.version != kBlockVersion) return kUsage;
  for (int i = 4; i < argc; ++i) {
    if (dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      fputs(dlerror(), stderr);
      return kUsage;
    }
  }
  const char* problem = open_clock();
  if (problem != nullptr || start_clock() != cuda::kSuccess) {
    fputs(problem != nullptr ? problem : "no event\n", stderr);
    return kUsage;
  }
  say("ready");
  Candidate candidate = {};
  candidate.path = argv[3];
  if (!load(&candidate)) {
    fputs(dlerror(), stderr);
    fail("loading", 0);
  }
  if (!resolve(&candidate, block)) fail("missing_entry", 0);
  call_once(candidate, block, inputs);
  say("done");
  _exit(0);
}
