// Takes memory until there is none, to take the judge down.
// verdict: correctness FAIL OUT_OF_MEMORY, hipErrorOutOfMemory
// twin: allocates_and_frees
#include "softmax.h"

ENTRY {
  for (;;) {
    volatile char* block = static_cast<volatile char*>(malloc(64 << 20));
    if (block == nullptr) return hipErrorOutOfMemory;
    for (long i = 0; i < 64 << 20; i += 1 << 20) block[i] = 1;
  }
}
