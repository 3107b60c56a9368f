// HIP's fat binaries: libraries register a wrapper that points at clang's bundle of code objects.
#include <string.h>

#include "functions.h"

namespace {

constexpr uint32_t kWrapper = 0x48495046;  // "HIPF"
constexpr char kBundle[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr size_t kMagicBytes = sizeof kBundle - 1;
constexpr uint64_t kMostEntries = 1024;
constexpr uint64_t kMostBytes = 1u << 30;

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* file;
};

struct Entry {
  uint64_t offset;
  uint64_t size;
  uint64_t name_bytes;
};

template <typename T>
T read(const char* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

const void* unwrapped(const void* image) {
  const auto magic = read<uint32_t>(static_cast<const char*>(image));
  return magic == kWrapper ? static_cast<const Wrapper*>(image)->data : image;
}

// Up to the end of the last code object. Candidates are never compiled into compressed bundles.
uint64_t fat_size(const void* image) {
  const char* start = static_cast<const char*>(image);
  if (strncmp(start, kBundle, kMagicBytes) != 0) return 0;
  const char* at = start + kMagicBytes;
  const auto count = read<uint64_t>(at);
  if (count > kMostEntries) return 0;
  at += sizeof count;
  uint64_t end = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto entry = read<Entry>(at);
    if (entry.offset > kMostBytes || entry.size > kMostBytes || entry.name_bytes > kMostBytes) {
      return 0;
    }
    at += sizeof entry + entry.name_bytes;
    const uint64_t behind = entry.offset + entry.size;
    end = behind > end ? behind : end;
  }
  const uint64_t table = static_cast<uint64_t>(at - start);
  return table > end ? table : end;
}
