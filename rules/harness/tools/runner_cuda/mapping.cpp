// The judge allocates the tensors in device memory and passes their descriptors. Pages have 2 MiB
// there, so the gaps between tensors cannot be unmapped. Instead the judge checks the guards for
// writes beside an output, and compares the inputs.
#include "../runner/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

namespace {

bool map_handle(Mapping* mapping, cuda::Handle handle, size_t size) {
  const cuda::Driver& driver = cuda::driver();
  cuda::Address address = 0;
  if (driver.address_reserve(&address, size, 0, 0, 0) != cuda::kSuccess) return false;
  const cuda::Access access = {cuda::kDeviceLocation, cuda::kDevice, cuda::kReadWrite};
  const bool mapped = driver.memory_map(address, size, 0, handle, 0) == cuda::kSuccess;
  if (!mapped || driver.memory_access(address, size, &access, 1) != cuda::kSuccess) {
    if (mapped) driver.memory_unmap(address, size);
    driver.address_free(address, size);
    return false;
  }
  mapping->base = reinterpret_cast<char*>(address);
  mapping->size = size;
  return true;
}

// Maps a whole allocation and closes its descriptor.
bool map_device(Mapping* mapping, int fd, size_t size) {
  const cuda::Driver& driver = cuda::driver();
  cuda::Handle handle = 0;
  void* descriptor = reinterpret_cast<void*>(static_cast<uintptr_t>(fd));
  const int error = driver.memory_import(&handle, descriptor, cuda::kPosixDescriptor);
  close(fd);
  if (error != cuda::kSuccess) return false;
  const bool mapped = map_handle(mapping, handle, size);
  driver.memory_release(handle);  // the mapping keeps the memory
  return mapped;
}

void unmap_device(Mapping* mapping) {
  if (mapping->base != nullptr) {
    const cuda::Address address = reinterpret_cast<cuda::Address>(mapping->base);
    cuda::driver().memory_unmap(address, mapping->size);
    cuda::driver().address_free(address, mapping->size);
  }
  *mapping = {};
}

}  // namespace

bool map_config(Buffers* buffers, const int fds[3]) {
  unmap(buffers);
  if (!map_file(&buffers->block, fds[0], PROT_READ)) return false;
  const ControlBlock* block = buffers->control();
  return map_device(&buffers->inputs, fds[1], block->input_bytes) &&
         map_device(&buffers->outputs, fds[2], block->output_bytes);
}

bool map_scratch(Buffers* buffers, int fd, size_t size, size_t first, size_t) {
  if (!map_device(&buffers->scratch, fd, size)) return false;
  buffers->workspace = buffers->scratch.base + first;
  return true;
}

void unmap(Buffers* buffers) {
  unmap_file(&buffers->block);
  unmap_device(&buffers->inputs);
  unmap_device(&buffers->outputs);
  unmap_device(&buffers->scratch);
  buffers->workspace = nullptr;
}

// This processor cannot fault on a device's address: all faults are on its own memory.
Location locate(const Buffers& buffers, const void* address) {
  if (holds(buffers.block, address)) return {protocol::kControl, -1, 0};
  return {protocol::kElsewhere, -1, 0};
}
