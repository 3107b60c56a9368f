// Looks for somebody to talk to by a Unix socket.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: starts_threads
#include "softmax.h"
#include "attack.h"

ENTRY {
  const int fd = int(libc("socket", 1, 1, 0));
  const struct { unsigned short family; char name[14]; } peer = {1, "\0kept-results"};
  if (libc("connect", fd, &peer, 15) != 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
