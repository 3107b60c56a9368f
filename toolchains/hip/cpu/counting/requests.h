// Accesses of single threads, joined to what a processor with lock-step waves would have asked for.
//
// Threads run one after the other here. The n-th time that a thread comes to an access of the code
// belongs to the n-th time of the other lanes of its wave, counted from where they last all met: at
// a barrier, an exchange of the whole wave, or the start of the block. Lanes that go around an
// inner loop different numbers of times, more than once between two such places, are joined by
// that count all the same.
#pragma once

#include "../sanitizer/findings.h"
#include "../sanitizer/regions.h"

namespace hipcpu {

constexpr uint32_t kMostLanes = 64;
constexpr uint32_t kMostSites = 2048;   // of one launch
constexpr uint32_t kMostCallers = 4;    // by which two calls of one function are told apart
constexpr uint32_t kSectorShift = 5;    // 32 bytes, what memory is fetched in
constexpr uint32_t kBanks = 32;         // of shared memory, each of 4 bytes

enum class Operation : uint8_t { kLoad, kStore, kAtomic, kBranch };
enum class Space : uint8_t { kGlobal, kShared, kNowhere };

/// What waves of one width have asked for at one place. Lanes and bytes are sums over requests.
struct Totals {
  uint64_t requests;
  uint64_t partial;        // without some lane of the wave
  uint64_t lanes;
  uint64_t bytes;          // asked for
  uint64_t sectors;        // global: 32-byte pieces that hold them
  uint64_t sectors_least;  // as many would hold as many distinct bytes, were they side by side
  uint64_t passes;         // shared: turns of the banks
  uint64_t passes_least;   // that as many lanes take without a conflict
  uint64_t passes_most;    // of one request
  uint64_t turns;          // atomics: of lanes at the address that most lanes of a request have
  uint64_t turns_most;     // of one request
  uint64_t divergent;      // branches: requests whose lanes go both ways
};

/// One access in the code, as one kind of operation of one width, in one of the two spaces; or a
/// conditional branch.
struct Site {
  uint64_t key;
  PlaceText place;
  char memory[64];         // what it accessed first
  Operation operation;
  Space space;
  uint32_t bytes;          // of a lane
  Totals narrow;           // waves of 32 lanes
  Totals wide;             // of 64; nothing where the kernel was compiled for 32
};

/// The current thread is about to access memory. Memory that is no region is its own.
void count_access(uintptr_t address, size_t bytes, Operation operation, const Caller& caller);
/// An atomic load, which is part of the update that may follow it at once.
void count_atomic_load(uintptr_t address, size_t bytes, const Caller& caller);
/// The current thread is about to branch, and does so if `taken`.
void count_branch(bool taken, const Caller& caller);

/// All lanes of the wave, or of all waves of the block, have met or returned.
void settle_wave(uint32_t wave);
void settle_block();

void begin_counts(uint32_t wave_shift);
Site* sites();
uint32_t site_count();
/// Accesses beyond what can be kept, since the launch began.
uint64_t uncounted();

}  // namespace hipcpu
