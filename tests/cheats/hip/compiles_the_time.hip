// Is another program at another time, of which macros have put the name together.
// verdict: compile FAIL COMPILE_ERROR, the clock stands still
// twin: expands_macros
#include "softmax.h"
#include "paste.h"

constexpr bool same(const char* a, const char* b) {
  return *a == *b && (*a == 0 || same(a + 1, b + 1));
}
static_assert(!same(PASTE(__TI, ME__) PASTE(__DA, TE__), "00:00:00" "Jan  1 1970") ||
                  !same(PASTE(__TIMES, TAMP__), "Thu Jan  1 00:00:00 1970"),
              "the clock stands still");
ENTRY { return honest(x, y, scale, rows, cols, stream); }
