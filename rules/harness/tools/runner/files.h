// Shared memory files, as this process maps them.
#pragma once
#include <stddef.h>

// One mapped descriptor, or memory of a device; `base` is null where there is none.
struct Mapping {
  char* base;
  size_t size;
};

// Maps all of a file and closes its descriptor. False when the kernel refuses, which means that
// the address space is used up.
bool map_file(Mapping* mapping, int fd, int protection);

void unmap_file(Mapping* mapping);

// Whether the mapping holds the address. Safe in a signal handler.
bool holds(const Mapping& mapping, const void* address);
