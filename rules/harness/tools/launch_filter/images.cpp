#include "images.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "filter.h"

namespace {

constexpr uint64_t kMostBytes = 1u << 30;

char g_path[512];
char g_folder[512];
const char* g_name = "";
bool g_python;

// A loaded file that holds an address.
struct Place {
  const char* address;
  const char* file;
  int64_t offset;  // of the address in the file; -1 if it is in no file
  uint64_t left;   // bytes of the segment's file from there on
};

int look(dl_phdr_info* info, size_t, void* argument) {
  Place* place = static_cast<Place*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const char* start = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    if (header.p_type != PT_LOAD || place->address < start) continue;
    const uint64_t within = static_cast<uint64_t>(place->address - start);
    if (within >= header.p_filesz) continue;
    place->file = info->dlpi_name;
    place->offset = static_cast<int64_t>(header.p_offset + within);
    place->left = header.p_filesz - within;
    return 1;
  }
  return 0;
}

Place place_of(const void* address) {
  Place place = {static_cast<const char*>(address), "", -1, 0};
  dl_iterate_phdr(look, &place);
  return place;
}

bool ends_with(const char* text, const char* end) {
  const size_t length = strlen(text), wanted = strlen(end);
  return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

bool is_pytorch(const Place& place) {
  return place.offset >= 0 && ends_with(place.file, kDriver.pytorch);
}

// Whether the memory at `place` equals the file's contents there.
bool as_in_file(const Place& place, uint64_t size) {
  if (size > place.left) return false;
  const int fd = open(place.file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char buffer[1 << 14];
  uint64_t done = 0;
  while (done < size) {
    const uint64_t wanted = size - done < sizeof buffer ? size - done : sizeof buffer;
    const ssize_t got = pread(fd, buffer, wanted, place.offset + static_cast<int64_t>(done));
    if (got <= 0 || memcmp(buffer, place.address + done, static_cast<size_t>(got)) != 0) break;
    done += static_cast<uint64_t>(got);
  }
  close(fd);
  return done == size;
}

uint64_t elf_size(const Elf64_Ehdr* header) {
  const uint64_t sections = header->e_shoff + uint64_t{header->e_shnum} * header->e_shentsize;
  const uint64_t segments = header->e_phoff + uint64_t{header->e_phnum} * header->e_phentsize;
  return sections > segments ? sections : segments;
}

bool is_elf(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_ident[EI_CLASS] == ELFCLASS64 &&
         header->e_shentsize == sizeof(Elf64_Shdr) && elf_size(header) < kMostBytes;
}

// The bytes of an image that begins with its own size; 0 for any other.
uint64_t image_size(const void* image) {
  const uint64_t fat = kDriver.fat_size(image);
  if (fat != 0) return fat;
  return is_elf(image) ? elf_size(static_cast<const Elf64_Ehdr*>(image)) : 0;
}

// Reads the tables at the beginning of a unit of DWARF's line numbers, versions 2 to 4.
class Lines {
 public:
  Lines(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  // Whether a unit names the candidate's file in the candidate's folder.
  bool name_candidate() {
    while (end_ - at_ > 15) {
      uint32_t length;
      memcpy(&length, at_, sizeof length);
      const uint8_t* next = at_ + 4 + length;
      if (next > end_ || length < 11) return false;
      uint16_t version;
      memcpy(&version, at_ + 4, sizeof version);
      const int fixed = version >= 4 ? 6 : 5;
      at_ += 10 + fixed - 1;
      if (version >= 2 && version <= 4 && files(next)) return true;
      at_ = next;
    }
    return false;
  }

 private:
  bool files(const uint8_t* end) {
    const uint8_t opcodes = *at_;
    at_ += opcodes == 0 ? 1 : opcodes;
    uint64_t folder = 0, number = 0;
    for (const char* text = string(end); text != nullptr && *text != 0; text = string(end)) {
      ++number;
      if (folder == 0 && strcmp(text, g_folder) == 0) folder = number;
    }
    if (folder == 0) return false;
    for (const char* text = string(end); text != nullptr && *text != 0; text = string(end)) {
      const uint64_t in = unsigned_number(end);
      unsigned_number(end);
      unsigned_number(end);
      if (in == folder && strcmp(text, g_name) == 0) return true;
    }
    return false;
  }

  // Reads the string here and moves past it; null if it does not end.
  const char* string(const uint8_t* end) {
    const void* stop = at_ < end ? memchr(at_, 0, static_cast<size_t>(end - at_)) : nullptr;
    if (stop == nullptr) return nullptr;
    const char* text = reinterpret_cast<const char*>(at_);
    at_ = static_cast<const uint8_t*>(stop) + 1;
    return text;
  }

  uint64_t unsigned_number(const uint8_t* end) {
    uint64_t value = 0;
    for (int shift = 0; at_ < end; shift += 7) {
      const uint8_t byte = *at_++;
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }

  const uint8_t* at_;
  const uint8_t* end_;
};

bool made_of_candidate(const void* image) {
  if (!is_elf(image)) return false;
  const auto* bytes = static_cast<const uint8_t*>(image);
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  const uint64_t size = elf_size(header);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
  if (header->e_shstrndx >= header->e_shnum) return false;
  const uint64_t names = sections[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (names + section.sh_name + sizeof ".debug_line" > size) continue;
    const char* name = reinterpret_cast<const char*>(bytes + names + section.sh_name);
    if (strcmp(name, ".debug_line") != 0) continue;
    if (section.sh_offset > size || section.sh_size > size - section.sh_offset) return false;
    const uint8_t* start = bytes + section.sh_offset;
    return Lines(start, start + section.sh_size).name_candidate();
  }
  return false;
}

// Whether an image is the text in the judge's orders.
bool is_harness(const char* image) {
  const Orders* given = orders();
  return given != nullptr && given->harness[0] != 0 &&
         strncmp(image, given->harness, sizeof given->harness) == 0;
}

}  // namespace

void set_candidate(const char* path) {
  const size_t length = strlen(path);
  if (length >= sizeof g_path) return;
  memcpy(g_path, path, length + 1);
  memcpy(g_folder, path, length + 1);
  char* slash = strrchr(g_folder, '/');
  if (slash == nullptr) return;
  *slash = 0;
  g_name = slash + 1;
  g_python = ends_with(path, ".py");
}

bool in_pytorch(const void* address) { return is_pytorch(place_of(address)); }

Owner owner_of_image(const void* image) {
  if (image == nullptr) return kForeign;
  if (is_harness(static_cast<const char*>(image))) return kHarness;
  image = kDriver.unwrapped(image);
  if (image == nullptr) return kForeign;
  const Place place = place_of(image);
  if (is_pytorch(place)) return kPyTorch;
  if (g_name[0] == 0) return kForeign;
  if (g_python) return made_of_candidate(image) ? kCandidate : kForeign;
  const uint64_t size = image_size(image);
  const bool own = place.offset >= 0 && strcmp(place.file, g_path) == 0 && size > 0;
  return own && as_in_file(place, size) ? kCandidate : kForeign;
}
