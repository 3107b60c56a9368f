// The baseline of all cheats.
#include "softmax.h"

ENTRY { return honest(x, y, scale, rows, cols, stream); }
