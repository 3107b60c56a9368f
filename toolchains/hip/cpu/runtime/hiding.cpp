#include "hiding.h"

#include <sys/mman.h>

#include "lock.h"
#include "worker.h"

namespace hipcpu {

namespace {

// Honest host code polls flags. So a repeated read of an unchanged flag counts only a share.
constexpr size_t kFlagShare = 4;
constexpr size_t kWords = kPage / sizeof(uint64_t);
constexpr uint64_t kPinnedBytes = 2 * kPage;
constexpr uint32_t kRemembered = 16;

// The last addresses that were counted.
struct Memory {
  const void* items[kRemembered];
  uint32_t next;

  // The index under which `address` is remembered; `known` is whether it was before.
  uint32_t place(const void* address, bool* known) {
    for (uint32_t i = 0; i < kRemembered; ++i) {
      *known = items[i] == address;
      if (*known) return i;
    }
    const uint32_t i = next++ % kRemembered;
    items[i] = address;
    return i;
  }

};

struct Call {
  const hipcpu_loan* loan;
  uint64_t copied;
  uint64_t pinned;  // bytes charged for pinned memory that host code touched after a launch
  Memory flags;
  Memory pages;
  bool shown[kRemembered];  // which of the pages host code can see now
  uint64_t flag_values[kRemembered];
};
Call call;
Lock counting;

// The remembered pages of pinned memory, as host code last saw or left them.
uint64_t seen[kRemembered][kWords];

// How many threads need device memory now. The number and the protection change under the lock.
// Each call begins at 0, so code that jumped out of a copy in an earlier call no longer counts.
Lock showing_lock;
uint32_t showing;
uint64_t call_number;
bool pinned_hidden;

bool hiding() { return call.loan != nullptr && call.loan->hide; }

bool holds(const void* base, size_t bytes, const void* address) {
  return static_cast<size_t>(static_cast<const char*>(address) - static_cast<const char*>(base)) <
         bytes;
}

const hipcpu_piece* find(const hipcpu_piece* pieces, uint32_t count, const void* address) {
  for (uint32_t i = 0; i < count; ++i) {
    if (holds(pieces[i].base, pieces[i].bytes, address)) return pieces + i;
  }
  return nullptr;
}

const Allocation* find_allocation(const void* address) {
  size_t count;
  const Allocation* items = list_allocations(&count);
  for (size_t i = count; i-- > 0;) {
    if (holds(items[i].base, items[i].bytes, address)) return items + i;
  }
  return nullptr;
}

bool is_lent(const void* address) {
  return call.loan != nullptr && find(call.loan->all, call.loan->all_count, address) != nullptr;
}

struct Range {
  Range(const void* base, size_t bytes) : begin(reinterpret_cast<uintptr_t>(base)) {
    end = bytes < UINTPTR_MAX - begin ? begin + bytes : UINTPTR_MAX;
  }

  bool holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }

  uintptr_t begin;
  uintptr_t end;
};

// Whether `match` holds for any stretch of device memory, pinned memory included if `pinned`.
template <class Match>
bool any_of_device(bool pinned, Match match) {
  const hipcpu_loan& loan = *call.loan;
  for (uint32_t i = 0; i < loan.all_count; ++i) {
    if (match(Range(loan.all[i].base, loan.all[i].bytes))) return true;
  }
  bool any = false;
  lock_allocations();
  size_t count;
  const Allocation* items = list_allocations(&count);
  for (size_t i = 0; i < count && !any; ++i) {
    any = (pinned || !items[i].pinned) && match(Range(items[i].base, items[i].bytes));
  }
  unlock_allocations();
  return any;
}

// Whether all of the range is device memory, so that host code cannot read it.
bool is_of_device(const Range& range) {
  return any_of_device(false, [&](const Range& memory) { return memory.holds(range); });
}

// Whether any of the range is device memory, or pinned memory that kernels may have written.
bool has_of_device(const Range& range) {
  return any_of_device(pinned_hidden, [&](const Range& memory) { return memory.meets(range); });
}

bool protect(const Allocation& allocation, bool visible) {
  const int protection = visible ? PROT_READ | PROT_WRITE : PROT_NONE;
  return mprotect(allocation.base, allocation.bytes, protection) == 0;
}

bool protect_all(bool visible) {
  bool ok = true;
  for (uint32_t i = 0; i < call.loan->piece_count; ++i) {
    const hipcpu_piece& piece = call.loan->pieces[i];
    const int protection = visible ? piece.protection : PROT_NONE;
    ok = call.loan->protect(piece.base, piece.bytes, protection) && ok;
  }
  lock_allocations();
  size_t count;
  const Allocation* items = list_allocations(&count);
  for (size_t i = 0; i < count; ++i) {
    const bool hidden = !items[i].pinned || pinned_hidden;
    if (hidden) ok = protect(items[i], visible) && ok;
  }
  unlock_allocations();
  return ok;
}

void count(uint64_t bytes) {
  call.copied = bytes < UINT64_MAX - call.copied ? call.copied + bytes : UINT64_MAX;
  if (call.copied > call.loan->most_copied) call.loan->refuse(call.copied);
}

void count_read(const void* from, size_t bytes, const uint64_t* flag) {
  counting.take();
  bool known;
  const uint32_t place = call.flags.place(from, &known);
  const bool unchanged = known && flag != nullptr && *flag == call.flag_values[place];
  if (flag != nullptr) call.flag_values[place] = *flag;
  count(unchanged ? (bytes + kFlagShare - 1) / kFlagShare : bytes);
  counting.leave();
}

// Updates what is known of a page; returns the bytes of the words that have changed. At least one
// word, since host code reads one now.
size_t learn(const uint64_t* page, uint64_t* known) {
  size_t words = 0;
  for (size_t i = 0; i < kWords; ++i) {
    const uint64_t word = __atomic_load_n(page + i, __ATOMIC_RELAXED);
    words += word != known[i];
    known[i] = word;
  }
  return (words == 0 ? 1 : words) * sizeof(uint64_t);
}

// Charges for a page of pinned memory that host code has touched. The page stays visible until the
// next launch. During the comparison no launch begins or ends, and no other thread can write, so
// none can read the page and then undo the changes.
void admit(const void* address) {
  auto* page = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(address) & ~(kPage - 1));
  showing_lock.take();
  if (showing == 0) mprotect(page, kPage, PROT_READ);
  bool known;
  const uint32_t place = call.pages.place(page, &known);
  const size_t learned = learn(page, seen[place]);
  call.shown[place] = true;
  call.pinned += known ? learned : kPage;
  if (call.pinned > call.loan->most_copied + kPinnedBytes) call.loan->refuse(call.pinned);
  if (showing == 0) mprotect(page, kPage, PROT_READ | PROT_WRITE);
  showing_lock.leave();
}

// Called before kernels may change the visible pages. Host code is not charged for its own writes.
void keep_shown() {
  for (uint32_t i = 0; i < kRemembered; ++i) {
    if (call.shown[i]) learn(static_cast<const uint64_t*>(call.pages.items[i]), seen[i]);
    call.shown[i] = false;
  }
}

// Forgets that pages of this allocation are visible; it is about to be freed.
void drop_shown(const Allocation& allocation) {
  for (uint32_t i = 0; i < kRemembered; ++i) {
    if (holds(allocation.base, allocation.bytes, call.pages.items[i])) call.shown[i] = false;
  }
}

}  // namespace

Visible::Visible() : ok(true), counted_(hiding()), call_(0) {
  if (!counted_) return;
  showing_lock.take();
  call_ = call_number;
  if (showing++ == 0) {
    keep_shown();
    ok = protect_all(true);
  }
  showing_lock.leave();
}

Visible::~Visible() {
  if (!counted_) return;
  showing_lock.take();
  if (call_ == call_number && --showing == 0 && hiding()) protect_all(false);
  showing_lock.leave();
}

void hide_pinned() {
  if (hiding()) pinned_hidden = true;
}

void hide_new(const Allocation& allocation) {
  if (!hiding() || allocation.pinned) return;
  showing_lock.take();
  if (showing == 0) protect(allocation, false);
  showing_lock.leave();
}

void show_old(const Allocation& allocation) {
  if (!hiding()) return;
  showing_lock.take();
  drop_shown(allocation);
  protect(allocation, true);
  showing_lock.leave();
}

void count_copy(const void* to, const void* from, size_t bytes, const uint64_t* flag) {
  if (call.loan == nullptr || !has_of_device({from, bytes}) || is_of_device({to, bytes})) return;
  count_read(from, bytes, flag);
}

void count_symbol_copy(const void* to, const void* symbol, size_t bytes, const uint64_t* flag) {
  if (call.loan != nullptr && !is_of_device({to, bytes})) count_read(symbol, bytes, flag);
}

}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

bool hipcpu_begin_call(const hipcpu_loan* loan) noexcept {
  const bool was_hiding = hiding();
  showing_lock.take();
  showing = 0;
  ++call_number;
  bool ok = true;
  if (was_hiding) ok = protect_all(true);
  pinned_hidden = false;
  call = Call{};
  call.loan = loan;
  if (hiding()) ok = protect_all(false) && ok;
  showing_lock.leave();
  return ok;
}

int hipcpu_explain_fault(const void* address) noexcept {
  if (!hiding()) return 0;
  if (hipcpu_context.in_kernel != 0) {
    const hipcpu_loan& loan = *call.loan;
    const bool own = find(loan.pieces, loan.piece_count, address) != nullptr;
    return is_lent(address) && !own ? 3 : 0;
  }
  if (is_lent(address)) return 2;
  const Allocation* found = find_allocation(address);
  if (found == nullptr) return 0;
  if (!found->pinned) return 2;
  admit(address);
  return 1;
}

}
