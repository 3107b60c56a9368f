// Waits for other host threads with the kernel's futex. The C library's locks have another layout
// and symbol version in some of its releases.
#pragma once

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hipcpu {

inline void futex_wait(uint32_t* word, uint32_t while_equal) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_equal, nullptr, nullptr, 0);
}

inline void futex_wake(uint32_t* word, int waiters) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr, 0);
}

/// Mutual exclusion. Zero-initialised, so it needs no constructor.
class Lock {
 public:
  void take() {
    uint32_t expected = kFree;
    if (__atomic_compare_exchange_n(&state_, &expected, kTaken, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return;
    }
    while (__atomic_exchange_n(&state_, kWanted, __ATOMIC_ACQUIRE) != kFree) {
      futex_wait(&state_, kWanted);
    }
  }

  void leave() {
    if (__atomic_exchange_n(&state_, kFree, __ATOMIC_RELEASE) == kWanted) futex_wake(&state_, 1);
  }

 private:
  enum : uint32_t { kFree, kTaken, kWanted };

  uint32_t state_;
};

}  // namespace hipcpu
