// A signal handler does the work some time later.
// verdict: correctness FAIL INCOMPLETE_OUTPUT, left unwritten
// twin: recovers_from_a_signal
#include "softmax.h"
#include "attack.h"

static const float* g_x;
static float* g_y;
static float g_scale;
static int64_t g_rows, g_cols;
static void handle(int) { (void)honest(g_x, g_y, g_scale, g_rows, g_cols, nullptr); }
ENTRY {
  g_x = x, g_y = y, g_scale = scale, g_rows = rows, g_cols = cols;
  libc("signal", 14, &handle);
  const int64_t after_200_ms[] = {0, 0, 0, 200000};
  libc("setitimer", 0, after_200_ms, nullptr);
  return hipSuccess;
}
