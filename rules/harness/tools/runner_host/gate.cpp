#include "../runner/gate.h"

#include <unistd.h>

// Calls on a processor run at once: nothing can be held back.
bool open_gate(int fd, const char**) {
  close(fd);
  return false;
}

int shut_gate(int64_t) { return 0; }

int end_gate(int64_t) { return 0; }

int pass_gate(int64_t, int64_t*) { return 0; }
