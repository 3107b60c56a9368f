#include "files.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool map_file(Mapping* mapping, int fd, int protection, void* wish) {
  struct stat info;
  if (fstat(fd, &info) != 0) return false;
  void* base = mmap(wish, info.st_size, protection, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) return false;
  mapping->base = static_cast<char*>(base);
  mapping->size = info.st_size;
  return true;
}

void unmap_file(Mapping* mapping) {
  if (mapping->base != nullptr) munmap(mapping->base, mapping->size);
  *mapping = {};
}

bool holds(const Mapping& mapping, const void* address) {
  const char* byte = static_cast<const char*>(address);
  return mapping.base != nullptr && byte >= mapping.base && byte < mapping.base + mapping.size;
}
