// Joins the accesses of single threads to the requests of a processor with lock-step waves.
//
// Threads run one after the other here. A thread's n-th execution of an access is joined to the
// n-th of the other lanes of its wave, counted from where all of them last met: at a barrier, an
// exchange of the whole wave, or the start of the block. That is inexact for lanes that run an
// inner loop different numbers of times, more than once between two such places.
#pragma once

#include "../sanitizer/findings.h"
#include "../sanitizer/regions.h"

namespace hipcpu {

constexpr uint32_t kMostLanes = 64;
constexpr uint32_t kMostSites = 2048;   // of one launch
constexpr uint32_t kMostCallers = 4;    // callers that tell two calls of one function apart
constexpr uint32_t kSectorShift = 5;    // memory is fetched in sectors of 32 bytes
constexpr uint32_t kBanks = 32;         // of shared memory, each of 4 bytes

enum class Operation : uint8_t { kLoad, kStore, kAtomic, kBranch, kArithmetic };
enum class Space : uint8_t { kGlobal, kShared, kNowhere };

/// The requests of waves of one width at one place. Lanes and bytes are sums over requests.
struct Totals {
  uint64_t requests;
  uint64_t partial;        // without some lane of the wave
  uint64_t lanes;
  uint64_t bytes;          // asked for
  uint64_t sectors;        // global: 32-byte pieces that hold them
  uint64_t sectors_least;  // enough for the distinct bytes if they were side by side
  uint64_t passes;         // shared: turns of the banks
  uint64_t passes_least;   // enough for these lanes without a conflict
  uint64_t passes_most;    // of one request
  uint64_t turns;          // atomics: lanes at the address that most lanes of a request share
  uint64_t turns_most;     // of one request
  uint64_t divergent;      // branches: requests whose lanes go both ways
};

/// One access in the code, as one kind of operation of one width, in one of the two spaces; or a
/// conditional branch; or arithmetic of one kind.
struct Site {
  uint64_t key;
  PlaceText place;
  char memory[64];         // what it accessed first
  Operation operation;
  Space space;
  uint32_t bytes;          // of a lane; the kind of arithmetic
  uint64_t computed;       // arithmetic: operations of all lanes
  Totals narrow;           // waves of 32 lanes
  Totals wide;             // of 64; nothing where the kernel was compiled for 32
};

/// The current thread is about to access memory. Memory outside all regions is the thread's own.
void count_access(uintptr_t address, size_t bytes, Operation operation, const Caller& caller);
/// An atomic load, which is part of the update that may follow it at once.
void count_atomic_load(uintptr_t address, size_t bytes, const Caller& caller);
/// The current thread is about to branch, and does so if `taken`.
void count_branch(bool taken, const Caller& caller);
/// The current thread has computed so many operations of one kind.
void count_arithmetic(uint32_t kind, uint32_t operations, const Caller& caller);

/// All lanes of the wave, or of all waves of the block, have met or returned.
void settle_wave(uint32_t wave);
void settle_block();

void begin_counts(uint32_t wave_shift);
Site* sites();
uint32_t site_count();
/// Accesses since the launch began for which there was no room.
uint64_t uncounted();

}  // namespace hipcpu
