#include "seal.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "filter.h"
#include "real.h"

namespace {

struct Table {
  uintptr_t base;
  Elf64_Sym* symbols;
  const char* strings;
  const uint32_t* hash;  // GNU's
};

Table table_of(const link_map* map) {
  Table table = {map->l_addr, nullptr, nullptr, nullptr};
  for (const Elf64_Dyn* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB: table.symbols = reinterpret_cast<Elf64_Sym*>(entry->d_un.d_ptr); break;
      case DT_STRTAB: table.strings = reinterpret_cast<const char*>(entry->d_un.d_ptr); break;
      case DT_GNU_HASH: table.hash = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr); break;
    }
  }
  return table;
}

// One past the last symbol that is looked up by name.
uint32_t symbol_count(const uint32_t* hash) {
  const uint32_t buckets = hash[0], first = hash[1], words = hash[2];
  const uint32_t* bucket = hash + 4 + words * 2;
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

// The loader's protection of the segment that holds an address.
struct Segment {
  uintptr_t address;
  int protection;
};

int look(dl_phdr_info* info, size_t, void* argument) {
  Segment* segment = static_cast<Segment*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || segment->address - start >= header.p_memsz) continue;
    segment->protection = ((header.p_flags & PF_R) ? PROT_READ : 0) |
                          ((header.p_flags & PF_W) ? PROT_WRITE : 0) |
                          ((header.p_flags & PF_X) ? PROT_EXEC : 0);
    return 1;
  }
  return 0;
}

}  // namespace

bool seal_driver() {
  link_map* map = nullptr;
  if (dlinfo(real_driver(), RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return false;
  const Table table = table_of(map);
  if (table.symbols == nullptr || table.strings == nullptr || table.hash == nullptr) return false;
  const uint32_t count = symbol_count(table.hash);
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(table.symbols) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(table.symbols + count);
  void* memory = reinterpret_cast<void*>(start);
  Segment segment = {reinterpret_cast<uintptr_t>(table.symbols), PROT_READ};
  dl_iterate_phdr(look, &segment);
  const int writable = segment.protection | PROT_WRITE;
  if (mprotect(memory, end - start, writable) != 0) return false;
  for (uint32_t i = table.hash[1]; i < count; ++i) {
    Elf64_Sym* symbol = &table.symbols[i];
    const void* real = reinterpret_cast<void*>(table.base + symbol->st_value);
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) continue;
    const char* name = table.strings + symbol->st_name;
    const void* own = stand_in_for_name(name);
    if (own == nullptr) own = stand_in_for_address(real);
    if (own == nullptr) own = refusal_of(name);
    if (own != nullptr) symbol->st_value = reinterpret_cast<uintptr_t>(own) - table.base;
  }
  return mprotect(memory, end - start, segment.protection) == 0;
}
