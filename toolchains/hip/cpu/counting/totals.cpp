#include "totals.h"

#include "footprint.h"
#include "reuse.h"

namespace hipcpu {

namespace {

constexpr uint32_t kWordShift = 2;
constexpr uint64_t kSector = 1ull << kSectorShift;

// Addresses of some lanes, in ascending order.
struct Addresses {
  uint64_t values[kMostLanes];
  uint32_t count;
};

Addresses sorted(const Request& request, uint64_t lanes) {
  Addresses out;
  out.count = 0;
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint64_t value = request.address[__builtin_ctzll(rest)];
    uint32_t at = out.count++;
    for (; at != 0 && out.values[at - 1] > value; --at) out.values[at] = out.values[at - 1];
    out.values[at] = value;
  }
  return out;
}

void add_sectors(Totals& totals, const Addresses& addresses, const Site& site, bool noted) {
  uint64_t distinct = 0;
  uint64_t sectors = 0;
  uint64_t end = 0;   // of the bytes counted so far
  uint64_t next = 0;  // the first sector not counted yet
  const uint32_t bytes = site.bytes;
  for (uint32_t i = 0; i < addresses.count; ++i) {
    const uint64_t from = addresses.values[i];
    const uint64_t to = from + bytes;
    if (to > end) distinct += to - (from > end ? from : end);
    if (to > end) end = to;
    const uint64_t first = from >> kSectorShift > next ? from >> kSectorShift : next;
    const uint64_t last = (to - 1) >> kSectorShift;
    if (last + 1 > first) sectors += last + 1 - first;
    for (uint64_t at = first; noted && at <= last; ++at) {
      note_sector(at, site.operation);
      note_reuse(at, site.operation);
    }
    if (last + 1 > next) next = last + 1;
  }
  totals.sectors += sectors;
  totals.sectors_least += (distinct + kSector - 1) / kSector;
}

// The turns that the banks take for a few lanes: one for each word of the busiest bank.
uint32_t bank_turns(const Request& request, uint64_t lanes, uint32_t bytes) {
  uint64_t words[kBanks * 4];
  uint32_t count = 0;
  uint32_t turns[kBanks] = {};
  uint32_t most = 0;
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint64_t address = request.address[__builtin_ctzll(rest)];
    const uint64_t last = (address + bytes - 1) >> kWordShift;
    for (uint64_t word = address >> kWordShift; word <= last; ++word) {
      bool known = false;
      for (uint32_t i = 0; i < count && !known; ++i) known = words[i] == word;
      if (known) continue;
      if (count < sizeof words / sizeof *words) words[count++] = word;
      const uint32_t taken = ++turns[word % kBanks];
      if (taken > most) most = taken;
    }
  }
  return most;
}

// Banks serve 128 bytes at a time, so lanes that ask for more than 4 bytes are served in groups.
void add_passes(Totals& totals, const Request& request, uint64_t lanes, uint32_t bytes) {
  const uint32_t words = bytes <= 4 ? 1 : bytes <= 8 ? 2 : 4;
  const uint32_t group = kBanks / words;
  const uint64_t mask = group == 32 ? 0xffffffffull : (1ull << group) - 1;
  uint64_t passes = 0;
  for (uint32_t first = 0; first < kMostLanes; first += group) {
    const uint64_t taking = lanes & (mask << first);
    if (taking == 0) continue;
    ++totals.passes_least;
    passes += bank_turns(request, taking, bytes);
  }
  totals.passes += passes;
  if (passes > totals.passes_most) totals.passes_most = passes;
}

void add_turns(Totals& totals, const Addresses& addresses) {
  uint32_t most = 0;
  uint32_t same = 0;
  for (uint32_t i = 0; i < addresses.count; ++i) {
    same = i != 0 && addresses.values[i] == addresses.values[i - 1] ? same + 1 : 1;
    if (same > most) most = same;
  }
  totals.turns += most;
  if (most > totals.turns_most) totals.turns_most = most;
}

bool both_ways(const Request& request, uint64_t lanes) {
  const uint64_t first = request.address[__builtin_ctzll(lanes)];
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    if (request.address[__builtin_ctzll(rest)] != first) return true;
  }
  return false;
}

// With `noted`, the launch's footprint and reuse are kept too: once, for the narrow warps.
void add(Totals& totals, const Site& site, const Request& request, uint64_t within,
         uint64_t live, bool noted) {
  const uint64_t lanes = request.lanes & within;
  if (lanes == 0) return;
  const uint32_t count = static_cast<uint32_t>(__builtin_popcountll(lanes));
  ++totals.requests;
  totals.partial += lanes != (live & within);
  totals.lanes += count;
  if (site.operation == Operation::kBranch) {
    totals.divergent += both_ways(request, lanes);
    return;
  }
  totals.bytes += count * static_cast<uint64_t>(site.bytes);
  if (site.space == Space::kShared) {
    add_passes(totals, request, lanes, site.bytes);
    if (site.operation != Operation::kAtomic) return;
  }
  const Addresses addresses = sorted(request, lanes);
  if (site.space == Space::kGlobal) add_sectors(totals, addresses, site, noted);
  if (site.operation == Operation::kAtomic) add_turns(totals, addresses);
}

}  // namespace

void add_request(Site& site, const Request& request, uint64_t live, uint32_t wave_shift) {
  add(site.narrow, site, request, 0xffffffffull, live, true);
  if (wave_shift == 5) return;
  add(site.narrow, site, request, 0xffffffffull << 32, live, true);
  add(site.wide, site, request, ~0ull, live, false);
}

}  // namespace hipcpu
