// Has a pragma of a text that macros make look at a file of the machine.
// verdict: compile FAIL COMPILE_ERROR, '/etc/passwd' file not found
// twin: expands_macros
#include "softmax.h"
#include "paste.h"

_Pragma(TEXT(GCC dependency "/etc/passwd"))
ENTRY { return honest(x, y, scale, rows, cols, stream); }
