#include "requests.h"

#include <stdlib.h>
#include <string.h>

#include "busiest.h"
#include "footprint.h"
#include "reuse.h"
#include "totals.h"

namespace hipcpu {

namespace {

constexpr uint32_t kChunk = 64;          // requests that are allocated at once
constexpr uint32_t kMostChunks = 8192;   // 270 MB
constexpr uint32_t kSlots = 4 * kMostSites;
constexpr uint32_t kNone = ~0u;

// The requests of one wave at one site that further lanes may join.
struct Open {
  uint32_t next[kMostLanes];  // which of them each lane comes to
  Request** chunks;
  uint32_t chunk_capacity;
  uint32_t chunk_count;
  uint32_t count;             // of requests
};

// The requests of one wave, in the order in which their first lanes came.
struct Order {
  struct Item {
    uint32_t site;
    uint32_t number;
  };
  Item* items;
  uint32_t capacity;
  uint32_t count;
};

struct AtomicLoad {
  bool pending;
  uintptr_t address;
  size_t bytes;
  Caller caller;
  uint32_t thread;
};

Site all_sites[kMostSites];
uint32_t used_sites;
uint32_t slots[kSlots];           // by key: a site's number plus one
Open* open_of[kMaxWaves];         // by wave: kMostSites of them
Order orders[kMaxWaves];          // by wave
uint32_t used_waves;
Request* idle_chunks[kMostChunks];
uint32_t idle_count;
uint32_t made_chunks;
uint64_t lost;
uint32_t shift = 6;               // of lanes of a wave
uint32_t running = kNone;         // the wave that ran last
AtomicLoad load;

uint64_t mixed(uint64_t key, uint64_t value) {
  key = (key ^ value) * 0x9e3779b97f4a7c15ull;
  return key ^ (key >> 29);
}

// Identifies an access by its place, its callers and its kind. Each is mixed in separately, or a
// kind could cancel out a distance in the code.
uint64_t key_of(const Caller& caller, size_t bytes, Operation operation, Space space) {
  uint64_t key = mixed(0xcbf29ce484222325ull, bytes << 8 | static_cast<uint64_t>(operation) << 4 |
                                                  static_cast<uint64_t>(space));
  uintptr_t code = caller.code;
  void* const* frame = caller.frame;
  for (uint32_t i = 0; i < kMostCallers && image.holds(code); ++i) {
    key = mixed(key, image.offset(code));
    void* const* next = static_cast<void* const*>(*frame);
    if (next <= frame || next > frame + kStackBytes / sizeof *frame) break;
    code = reinterpret_cast<uintptr_t>(next[1]);
    frame = next;
  }
  return key;
}

uint32_t site_of(const Caller& caller, size_t bytes, Operation operation, Space space,
                 const Region* region) {
  const uint64_t key = key_of(caller, bytes, operation, space);
  uint32_t slot = static_cast<uint32_t>(key >> 40) % kSlots;
  for (; slots[slot] != 0; slot = (slot + 1) % kSlots) {
    if (all_sites[slots[slot] - 1].key == key) return slots[slot] - 1;
  }
  if (used_sites == kMostSites) return kNone;
  Site& site = all_sites[used_sites];
  site = Site{};
  site.key = key;
  site.place = place_of(caller);
  if (region != nullptr) memcpy(site.memory, region->name, sizeof site.memory);
  site.operation = operation;
  site.space = space;
  site.bytes = static_cast<uint32_t>(bytes);
  slots[slot] = ++used_sites;
  return used_sites - 1;
}

Request* take_chunk() {
  if (idle_count != 0) return idle_chunks[--idle_count];
  if (made_chunks == kMostChunks) return nullptr;
  Request* chunk = static_cast<Request*>(malloc(kChunk * sizeof(Request)));
  if (chunk != nullptr) ++made_chunks;
  return chunk;
}

bool grow(Open& open) {
  if (open.chunk_count == open.chunk_capacity) {
    const uint32_t capacity = open.chunk_capacity == 0 ? 4 : 2 * open.chunk_capacity;
    void* memory = realloc(open.chunks, capacity * sizeof *open.chunks);
    if (memory == nullptr) return false;
    open.chunks = static_cast<Request**>(memory);
    open.chunk_capacity = capacity;
  }
  Request* chunk = take_chunk();
  if (chunk == nullptr) return false;
  open.chunks[open.chunk_count++] = chunk;
  return true;
}

bool append(Order& order, uint32_t site, uint32_t number) {
  if (order.count == order.capacity) {
    const uint32_t capacity = order.capacity == 0 ? kChunk : 2 * order.capacity;
    void* memory = realloc(order.items, capacity * sizeof *order.items);
    if (memory == nullptr) return false;
    order.items = static_cast<Order::Item*>(memory);
    order.capacity = capacity;
  }
  order.items[order.count++] = {site, number};
  return true;
}

// The request of a wave that a lane joins at a site; null if there is no room for it.
Request* join(uint32_t wave, uint32_t site, uint32_t lane) {
  Open& open = open_of[wave][site];
  const uint32_t number = open.next[lane];
  if (number == open.count) {
    if (open.count == open.chunk_count * kChunk && !grow(open)) return nullptr;
    if (!append(orders[wave], site, number)) return nullptr;
    open.chunks[number / kChunk][number % kChunk].lanes = 0;
    ++open.count;
  }
  ++open.next[lane];
  return &open.chunks[number / kChunk][number % kChunk];
}

Open* open_sites(uint32_t wave) {
  if (open_of[wave] == nullptr) {
    open_of[wave] = static_cast<Open*>(calloc(kMostSites, sizeof(Open)));
  }
  if (wave >= used_waves) used_waves = wave + 1;
  return open_of[wave];
}

uint64_t live_lanes(uint32_t wave) {
  const uint32_t first = wave << shift;
  const uint32_t threads = hipcpu_context.count;
  const uint32_t lanes = first < threads ? threads - first : 0;
  const uint32_t most = 1u << shift;
  if (lanes >= most) return most == 64 ? ~0ull : (1ull << most) - 1;
  return (1ull << lanes) - 1;
}

// Counts an access or branch of the current thread; `value` is the address or the branch taken.
void join_site(uint32_t site, uint64_t value) {
  const uint32_t thread = hipcpu_context.current;
  const uint32_t lane = thread & ((1u << shift) - 1);
  const uint32_t wave = thread >> shift;
  const bool known = site != kNone && open_sites(wave) != nullptr;
  Request* request = known ? join(wave, site, lane) : nullptr;
  if (request == nullptr) {
    ++lost;
    return;
  }
  request->lanes |= 1ull << lane;
  request->address[lane] = value;
}

void count(uintptr_t address, size_t bytes, Operation operation, const Caller& caller) {
  const Region* region = find_region(address);
  if (region == nullptr) return;
  const Space space = region->shared() ? Space::kShared : Space::kGlobal;
  if (space == Space::kGlobal && operation != Operation::kStore) note_load();
  const uint32_t site = site_of(caller, bytes, operation, space, region);
  // Counted as if each piece of device memory began at 256 bytes; pieces never overlap so.
  join_site(site, (static_cast<uint64_t>(region->begin) << 8) + (address - region->begin));
}

// Without barriers and exchanges, a wave has returned once a thread of another wave runs.
void note_thread() {
  const uint32_t wave = hipcpu_context.current >> shift;
  if (wave == running) return;
  if (running != kNone && !hipcpu_context.interleaved) settle_wave(running);
  running = wave;
}

void settle_load() {
  if (!load.pending) return;
  load.pending = false;
  // The thread of the atomic load, which may no longer be the current one.
  const uint32_t current = hipcpu_context.current;
  hipcpu_context.current = load.thread;
  count(load.address, load.bytes, Operation::kLoad, load.caller);
  hipcpu_context.current = current;
}

}  // namespace

void count_access(uintptr_t address, size_t bytes, Operation operation, const Caller& caller) {
  if (load.pending && operation == Operation::kAtomic && load.address == address &&
      load.thread == hipcpu_context.current) {
    load.pending = false;
  }
  settle_load();
  note_thread();
  count(address, bytes, operation, caller);
}

void count_branch(bool taken, const Caller& caller) {
  settle_load();
  note_thread();
  join_site(site_of(caller, 0, Operation::kBranch, Space::kNowhere, nullptr), taken ? 1 : 0);
}

void count_arithmetic(uint32_t kind, uint32_t operations, const Caller& caller) {
  note_operations(operations);
  const uint32_t site = site_of(caller, kind, Operation::kArithmetic, Space::kNowhere, nullptr);
  if (site == kNone) {
    ++lost;
  } else {
    all_sites[site].computed += operations;
  }
}

void count_atomic_load(uintptr_t address, size_t bytes, const Caller& caller) {
  settle_load();
  note_thread();
  load = {true, address, bytes, caller, hipcpu_context.current};
}

void settle_wave(uint32_t wave) {
  settle_load();
  if (wave >= kMaxWaves || open_of[wave] == nullptr) return;
  const uint64_t live = live_lanes(wave);
  Order& order = orders[wave];
  for (uint32_t i = 0; i < order.count; ++i) {
    const Order::Item& item = order.items[i];
    Request** chunks = open_of[wave][item.site].chunks;
    const Request& request = chunks[item.number / kChunk][item.number % kChunk];
    add_request(all_sites[item.site], request, live, shift);
  }
  order.count = 0;
  for (uint32_t s = 0; s < used_sites; ++s) {
    Open& open = open_of[wave][s];
    if (open.count == 0) continue;
    while (open.chunk_count != 0) idle_chunks[idle_count++] = open.chunks[--open.chunk_count];
    open.count = 0;
    memset(open.next, 0, sizeof open.next);
  }
}

void settle_block() {
  settle_load();
  for (uint32_t wave = 0; wave < used_waves; ++wave) settle_wave(wave);
  running = kNone;
}

void begin_counts(uint32_t wave_shift) {
  shift = wave_shift;
  used_sites = 0;
  memset(slots, 0, sizeof slots);
  lost = 0;
  begin_footprint();
  begin_reuse();
  begin_busiest();
}

Site* sites() { return all_sites; }
uint32_t site_count() { return used_sites; }
uint64_t uncounted() { return lost; }

}  // namespace hipcpu
