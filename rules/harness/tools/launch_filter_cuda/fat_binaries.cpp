// CUDA's fat binaries: libraries register a wrapper that points at a header and its code.
#include <string.h>

#include "functions.h"

namespace {

constexpr uint32_t kWrapper = 0x466243B1;  // __fatBinC_Wrapper_t
constexpr uint32_t kFat = 0xBA55ED50;

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* file;
};

struct FatHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header;
  uint64_t size;
};

}  // namespace

const void* unwrapped(const void* image) {
  uint32_t magic;
  memcpy(&magic, image, sizeof magic);
  return magic == kWrapper ? static_cast<const Wrapper*>(image)->data : image;
}

uint64_t fat_size(const void* image) {
  FatHeader header;
  memcpy(&header, image, sizeof header);
  return header.magic == kFat ? header.header + header.size : 0;
}
