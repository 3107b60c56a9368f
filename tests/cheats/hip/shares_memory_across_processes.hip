// Leaves results in System V shared memory or in /dev/shm for its next process.
// verdict: correctness FAIL LAUNCH_ERROR, returned hipError
// twin: allocates_and_frees
#include "softmax.h"
#include "attack.h"

ENTRY {
  const int file = int(libc("open", "/dev/shm/kept", 0102, 0600));
  const bool room = file >= 0 && libc("posix_fallocate", file, 0L, 1L << 20) == 0;
  if (!room && libc("shmget", 4711, size_t{1 << 20}, 01600) < 0) return hipErrorNotSupported;
  return honest(x, y, scale, rows, cols, stream);
}
