// Compiles, and has a section that no linker takes: as a failure of the tools, nobody's.
// verdict: compile FAIL COMPILE_ERROR, the linker rejects it
// twin: constructs
#include "softmax.h"

__attribute__((section(".eh_frame"), used)) static const char no_frame[] = "nothing that unwinds";
ENTRY {
  return honest(x, y, scale, rows, cols, stream);
}
