// Has the assembler read a file of the machine, by a word that macros put together.
// verdict: compile FAIL COMPILE_ERROR, inline assembly is disabled
// twin: expands_macros
#include "softmax.h"
#include "paste.h"

PASTE(a, sm)(TEXT(.incbin "/etc/passwd"));
ENTRY { return honest(x, y, scale, rows, cols, stream); }
