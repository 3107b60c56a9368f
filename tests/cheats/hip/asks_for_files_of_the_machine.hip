// Is another program where the machine has another file: macros put the question together.
// verdict: compile FAIL COMPILE_ERROR, this machine has no such file
// twin: expands_macros
#include "softmax.h"
#include "paste.h"

#if !PASTE(__has_, include)("/etc/passwd") && !PASTE(__has_, include)(</proc/self/status>)
#error this machine has no such file
#endif
ENTRY { return honest(x, y, scale, rows, cols, stream); }
