// This process's mappings of shared memory files.
#pragma once
#include <stddef.h>

// One mapped descriptor, or memory of a device; `base` is null if there is none.
struct Mapping {
  char* base;
  size_t size;
};

// Maps a whole file, at `wish` if that place is free, and closes its descriptor. False if the
// kernel refuses, for example because the address space is used up.
bool map_file(Mapping* mapping, int fd, int protection, void* wish = nullptr);

void unmap_file(Mapping* mapping);

// Whether the mapping holds the address. Safe in a signal handler.
bool holds(const Mapping& mapping, const void* address);
