#include "filter.h"

#include <string.h>

#include "copies.h"
#include "images.h"
#include "real.h"
#include "seal.h"

namespace {

constexpr char kNameless[] = "a kernel without a name";
bool g_sealed;
uint64_t g_epoch;
uint64_t g_launched;  // since the epoch began

void count(uint64_t* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

bool strict() { return filtering() && orders()->rule == kOwn; }

// Whether the judge wants this launch to run; the launches of an epoch are counted.
bool within_limit() {
  Lock lock;
  const uint64_t epoch = __atomic_load_n(&orders()->epoch, __ATOMIC_ACQUIRE);
  if (epoch != g_epoch) {
    g_epoch = epoch;
    g_launched = 0;
  }
  return g_launched++ < __atomic_load_n(&orders()->limit, __ATOMIC_ACQUIRE);
}

// The record of a kernel, which is made at its first launch.
Handle known(const void* kernel) {
  {
    Lock lock;
    const Handle* found = find(kernel, false);
    if (found != nullptr && found->judged) return *found;
  }
  const char* name = kDriver.name_of(kernel);
  Owner owner = owner_of(kernel);
  if (owner == kUnknown) owner = kDriver.owner_of(kernel);
  if (name == nullptr) name = kNameless;
  const Copying does = owner == kPyTorch ? copying(name) : kComputes;
  const bool others = owner != kCandidate && does == kComputes;
  const Kind kind = others && strict() ? kRefused : does == kComputes ? kKernel : kCopy;
  Handle made = {kernel, nullptr, owner, true, static_cast<uint8_t>(does), -1, nullptr};
  Lock lock;
  if (owner != kHarness) made.entry = static_cast<int16_t>(note(name, kind));
  Handle* found = find(kernel, true);
  if (found != nullptr) {
    made.home = found->home;
    made.name = found->name;
    *found = made;
  }
  return made;
}

// Whether a kernel may be launched with this many blocks: PyTorch may convert a scalar, or as much
// as one block holds, but no more.
bool allowed(const Handle& kernel, uint64_t blocks) {
  if (!strict() || kernel.owner == kCandidate || kernel.owner == kHarness) return true;
  return kernel.copying == kMoves || (kernel.copying == kConverts && blocks <= 1);
}

void refuse(const Handle& kernel) {
  if (kernel.entry >= 0) {
    Noted* entry = &record()->entries[kernel.entry];
    entry->kind = kRefused;
    count(&entry->launches);
  }
  count(&record()->refused);
}

}  // namespace

bool filtering() { return orders() != nullptr; }

void stand_before(void** real) {
  for (size_t i = 0; i < kDriver.count; ++i) real[i] = real_function(kDriver.wrapped[i].name);
  g_sealed = seal_driver();
}

void loaded(const void* home, const void* image) { own(home, home, owner_of_image(image)); }

void given(const void* handle, const void* home) { own_as(handle, home); }

Decision decide(const void* kernel, uint64_t blocks) {
  if (!filtering()) return kRun;
  const Handle what = known(kernel);
  if (what.owner == kHarness) return kRun;
  if (!allowed(what, blocks)) {
    refuse(what);
    return kRefuse;
  }
  const bool copies = what.copying != kComputes;
  if (!copies && !within_limit()) {
    count(&record()->left_out);
    return kLeaveOut;
  }
  if (what.entry >= 0) count(&record()->entries[what.entry].launches);
  count(copies ? &record()->copies : &record()->kernels);
  return kRun;
}

bool may_be_in_graph(const void* kernel, uint64_t blocks) {
  if (!filtering()) return true;
  const Handle what = known(kernel);
  if (allowed(what, blocks)) return true;
  refuse(what);
  return false;
}

Decision decide_graph() {
  if (!filtering()) return kRun;
  if (!within_limit()) {
    count(&record()->left_out);
    return kLeaveOut;
  }
  count(&record()->graphs);
  return kRun;
}

void* stand_in_for_name(const char* name) {
  for (size_t i = 0; i < kDriver.count; ++i) {
    if (strcmp(kDriver.wrapped[i].name, name) == 0) return kDriver.wrapped[i].own;
  }
  return nullptr;
}

void* stand_in_for_address(const void* real) {
  for (size_t i = 0; i < kDriver.count; ++i) {
    if (kDriver.real[i] != nullptr && kDriver.real[i] == real) return kDriver.wrapped[i].own;
  }
  return nullptr;
}

void* refusal_of(const char* name) {
  return strict() && kDriver.launches(name) ? kDriver.refuse : nullptr;
}

// Starts to enforce the judge's orders, from the first page, and to write the record into the
// second. `candidate` is the candidate's file. Called once, before that is loaded; 0 on success.
extern "C" int kabuild_filter_launches(int orders_fd, int record_fd, const char* candidate) {
  if (filtering()) return 1;
  set_candidate(candidate);
  if (!attach(orders_fd, record_fd)) return 2;
  return g_sealed && seal_driver() ? 0 : 3;  // again, now that some functions are refused
}
