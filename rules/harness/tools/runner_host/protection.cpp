#include "protection.h"

#include <stdint.h>
#include <sys/random.h>

#include "../runner/hiding.h"

// The system-call filter sees the address of the instruction behind the system call.
extern "C" long kabuild_protect_lent(char* base, size_t bytes, int protection);
extern "C" const char kabuild_protect_lent_place[];

#if defined(__x86_64__)
asm(R"(
  .text
  .hidden kabuild_protect_lent
  .hidden kabuild_protect_lent_place
  .globl kabuild_protect_lent
  .globl kabuild_protect_lent_place
  .type kabuild_protect_lent, @function
kabuild_protect_lent:
  mov $10, %eax
  syscall
kabuild_protect_lent_place:
  ret
)");
#else
asm(R"(
  .text
  .hidden kabuild_protect_lent
  .hidden kabuild_protect_lent_place
  .globl kabuild_protect_lent
  .globl kabuild_protect_lent_place
  .type kabuild_protect_lent, %function
kabuild_protect_lent:
  mov x8, #226
  svc #0
kabuild_protect_lent_place:
  ret
)");
#endif

bool protect_lent(char* base, size_t bytes, int protection) {
  return kabuild_protect_lent(base, bytes, protection) == 0;
}

void* lent_place() {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return nullptr;
  constexpr uint64_t kWindow = uint64_t{0x2000} << 32;
  constexpr uint64_t kBits = (uint64_t{0x800} << 32) - 1;  // leaves room behind it in the window
  return reinterpret_cast<void*>(kWindow + (random & kBits & ~uint64_t{0xFFFF}));
}

const void* place_of_protection() { return kabuild_protect_lent_place; }
