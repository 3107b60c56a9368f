// Hides device memory from host code, as a GPU does, while a runner's judge wants that. Also limits
// how much of it host code may copy.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

/// Whole pages of lent memory, with the protection (of mprotect) that kernels find.
struct hipcpu_piece {
  char* base;
  size_t bytes;
  int protection;
};

/// The memory that is lent to one call. The pointers are valid until the call has ended.
struct hipcpu_loan {
  const hipcpu_piece* all;     // all lent memory, including that of other calls
  const hipcpu_piece* pieces;  // memory that kernels of this call may touch
  uint32_t all_count;
  uint32_t piece_count;
  bool hide;             // whether to hide it from host code; then the caller has protected `all`
  uint64_t most_copied;  // bytes that may be copied from device memory to the host's
  bool (*protect)(char* base, size_t bytes, int protection);  // lent memory, like mprotect
  void (*refuse)(uint64_t bytes);  // called when more was copied; does not return
};

/// Begins a call; null ends it. False if memory cannot be hidden.
bool hipcpu_begin_call(const hipcpu_loan* loan) noexcept;

/// What a faulting access of this thread has met. 0: no hidden memory. 1: memory that is visible
/// now, so that the access can be repeated. 2: device memory, accessed by host code. 3: another
/// call's memory, accessed by a kernel. Safe in a signal handler.
int hipcpu_explain_fault(const void* address) noexcept;

}

namespace hipcpu {

/// A multiple of the machine's page, which may be larger on arm64.
#if defined(__x86_64__)
constexpr size_t kPage = 4 << 10;
#else
constexpr size_t kPage = 64 << 10;
#endif

/// Device memory in whole pages; `pinned` memory is the host's, which kernels can reach, too.
struct Allocation {
  char* base;
  size_t bytes;
  bool pinned;
};

/// Device memory is visible while an object of this class exists.
class Visible {
 public:
  Visible();
  ~Visible();
  Visible(const Visible&) = delete;
  Visible& operator=(const Visible&) = delete;

  bool ok;  // false if the machine refused

 private:
  bool counted_;
  uint64_t call_;
};

/// Called by each launch: pinned memory is hidden, too, once a kernel may have written to it.
void hide_pinned();
/// Hides new memory, too, and shows memory that is given back to the C library.
void hide_new(const Allocation& allocation);
void show_old(const Allocation& allocation);

/// A copy of at most this many bytes may be that of a flag.
constexpr size_t kFlagBytes = sizeof(uint64_t);

/// Counts a copy if it reads any device memory, or pinned memory that a kernel may have written,
/// and does not write to device memory only. `flag` has the bytes if they are few, else it is null.
/// A flag that host code has read before, and that has not changed, counts less.
void count_copy(const void* to, const void* from, size_t bytes, const uint64_t* flag);
/// Counts a copy from a variable of the device.
void count_symbol_copy(const void* to, const void* symbol, size_t bytes, const uint64_t* flag);

// memory.cpp
/// The allocations that are not freed. Valid while the lock is held, and in signal handlers.
const Allocation* list_allocations(size_t* count);
void lock_allocations();
void unlock_allocations();

}  // namespace hipcpu
