// The runtime's notifications about a running kernel, and the counts of a launch as lines that a
// judge reads from standard error once it has ended:
//
//   kabuild-counts launch KERNEL; grid X Y Z block X Y Z shared BYTES wave LANES ...
//   kabuild-counts footprint sectors READ WRITTEN blocks READ MOST whole 0|1
//   kabuild-counts busiest loads COUNT operations COUNT
//   kabuild-counts reuse OPERATION one_in COUNT first COUNT within COUNTS across COUNTS
//   kabuild-counts access PLACE MEMORY; OPERATION SPACE BYTES narrow 11 totals wide 11 totals
//   kabuild-counts branch PLACE; narrow 4 totals wide 4 totals
//   kabuild-counts arithmetic PLACE; KIND operations of all lanes
//   kabuild-counts barrier PLACE; how often a block has passed it
//   kabuild-counts end
//   kabuild-counts full, instead of a launch for which there is no room
//
// Places are those of `sanitizer/findings.h`; the totals are those of `requests.h`, in their order;
// reuse is that of `reuse.h`, by distances, without those at the end that nothing has.
#include "../runtime/observer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "busiest.h"
#include "footprint.h"
#include "requests.h"
#include "reuse.h"

namespace hipcpu {

namespace {

constexpr uint32_t kMostBarriers = 64;   // places of a launch
constexpr size_t kMostOutput = 3 << 20;  // bytes per process; the judge keeps more

struct Barrier {
  char file[64];
  uint32_t line;
  PlaceText place;
  uint64_t passed;
};

Barrier barriers[kMostBarriers];
uint32_t barrier_count;
Barrier coming;
uint64_t exchanges;
size_t written_bytes;
char kernel[96];

char text[1 << 14];
size_t length;

const char* or_dash(const char* name) { return name[0] == '\0' ? "-" : name; }

void flush() {
  for (size_t at = 0; at < length;) {
    const ssize_t done = write(STDERR_FILENO, text + at, length - at);
    if (done <= 0) break;  // nobody reads stderr
    at += static_cast<size_t>(done);
  }
  written_bytes += length;
  length = 0;
}

__attribute__((format(printf, 1, 2))) void say(const char* format, ...) {
  if (sizeof text - length < 2048) flush();
  va_list values;
  va_start(values, format);
  length += static_cast<size_t>(vsnprintf(text + length, sizeof text - length, format, values));
  va_end(values);
}

void say(const Totals& totals) {
  const uint64_t values[] = {totals.requests,     totals.partial,      totals.lanes,
                             totals.bytes,        totals.sectors,      totals.sectors_least,
                             totals.passes,       totals.passes_least, totals.passes_most,
                             totals.turns,        totals.turns_most};
  for (uint64_t value : values) say(" %llu", static_cast<unsigned long long>(value));
}

void say_branch(const Totals& totals) {
  const uint64_t values[] = {totals.requests, totals.partial, totals.lanes, totals.divergent};
  for (uint64_t value : values) say(" %llu", static_cast<unsigned long long>(value));
}

// In the order of arithmetic.py.
const char* kind_of(uint32_t kind) {
  const char* kinds[] = {"f64", "f32", "f16", "special", "conversion", "integer"};
  return kind < sizeof kinds / sizeof *kinds ? kinds[kind] : "-";
}

const char* const kOperations[] = {"load", "store", "atomic"};

void say_distances(const char* name, const uint64_t (&counts)[kDistances]) {
  uint32_t end = kDistances;
  while (end != 0 && counts[end - 1] == 0) --end;
  say(" %s", name);
  for (uint32_t i = 0; i < end; ++i) say(" %llu", static_cast<unsigned long long>(counts[i]));
}

void say_reuse(Operation operation) {
  const Reuse& told = reuse(operation);
  say("kabuild-counts reuse %s one_in %llu first %llu", kOperations[static_cast<int>(operation)],
      static_cast<unsigned long long>(reuse_one_in()),
      static_cast<unsigned long long>(told.first));
  say_distances("within", told.within);
  say_distances("across", told.across);
  say("\n");
}

void say(const Site& site) {
  if (site.operation == Operation::kArithmetic) {
    return say("kabuild-counts arithmetic %s; %s %llu\n", or_dash(site.place.text),
               kind_of(site.bytes), static_cast<unsigned long long>(site.computed));
  }
  if (site.operation == Operation::kBranch) {
    say("kabuild-counts branch %s; narrow", or_dash(site.place.text));
    say_branch(site.narrow);
    say(" wide");
    say_branch(site.wide);
    return say("\n");
  }
  say("kabuild-counts access %s %s; %s %s %u narrow", or_dash(site.place.text),
      or_dash(site.memory), kOperations[static_cast<int>(site.operation)],
      site.space == Space::kShared ? "shared" : "global", site.bytes);
  say(site.narrow);
  say(" wide");
  say(site.wide);
  say("\n");
}

void say(const dim3& dim) { say(" %u %u %u", dim.x, dim.y, dim.z); }

void report(const Job& job) {
  if (written_bytes > kMostOutput) {
    say("\nkabuild-counts full\n");
    return flush();
  }
  // On its own line, even if the kernel has printed part of one.
  say("\nkabuild-counts launch %s; grid", or_dash(kernel));
  say(job.grid);
  say(" block");
  say(job.block);
  say(" shared %zu wave %u exchanges %llu uncounted %llu\n", job.shared_bytes, job.wave_size,
      static_cast<unsigned long long>(exchanges), static_cast<unsigned long long>(uncounted()));
  const Footprint sectors = footprint();
  say("kabuild-counts footprint sectors %llu %llu blocks %llu %llu whole %d\n",
      static_cast<unsigned long long>(sectors.read),
      static_cast<unsigned long long>(sectors.written),
      static_cast<unsigned long long>(sectors.read_by_blocks),
      static_cast<unsigned long long>(sectors.most_of_block), sectors.whole ? 1 : 0);
  const Busiest thread = busiest();
  say("kabuild-counts busiest loads %llu operations %llu\n",
      static_cast<unsigned long long>(thread.loads),
      static_cast<unsigned long long>(thread.operations));
  say_reuse(Operation::kLoad);
  say_reuse(Operation::kStore);
  say_reuse(Operation::kAtomic);
  for (uint32_t i = 0; i < site_count(); ++i) say(sites()[i]);
  for (uint32_t i = 0; i < barrier_count; ++i) {
    const Barrier& barrier = barriers[i];
    say("kabuild-counts barrier at:%s:%u:1,%s; %llu\n", barrier.file, barrier.line,
        barrier.place.text, static_cast<unsigned long long>(barrier.passed));
  }
  say("kabuild-counts end\n");
  flush();
}

}  // namespace

void observe_launch(const Job& job) {
  begin_counts(static_cast<uint32_t>(__builtin_ctz(job.wave_size)));
  barrier_count = 0;
  exchanges = 0;
}

void observe_end(const Job& job) {
  settle_block();
  report(job);
  kernel[0] = '\0';
}

void observe_block(const Worker& worker, uint64_t block) {
  settle_block();
  begin_block_footprint();
  begin_block_reuse();
  begin_block_busiest();
  if (block != 0) return;
  remove_region(worker.dynamic_shared);
  if (worker.job->shared_bytes != 0) {
    add_region(Kind::kDynamicShared, worker.dynamic_shared, worker.job->shared_bytes,
               kMaxSharedBytes, "", false);
  }
}

void observe_arrival(const Worker&) {}

void observe_release(const Worker&) {
  settle_block();
  for (uint32_t i = 0; i < barrier_count; ++i) {
    if (barriers[i].line == coming.line && strcmp(barriers[i].file, coming.file) == 0 &&
        strcmp(barriers[i].place.text, coming.place.text) == 0) {
      ++barriers[i].passed;
      return;
    }
  }
  if (barrier_count == kMostBarriers) return;
  barriers[barrier_count] = coming;
  barriers[barrier_count++].passed = 1;
}

void observe_exchange(const Worker& worker, uint32_t wave, uint64_t group) {
  ++exchanges;
  if (group == worker.waves[wave].live) settle_wave(wave);
}

void observe_allocation(const void* memory, size_t bytes) {
  add_region(Kind::kAllocation, memory, bytes, bytes, "", false);
}

void observe_free(const void* memory) { remove_region(memory); }

void observe_host_write(const void*, size_t) {}

}  // namespace hipcpu

using namespace hipcpu;

extern "C" {

void hipcpu_sanitizer_barrier(const char* file, uint32_t line) noexcept {
  snprintf(coming.file, sizeof coming.file, "%s", file);
  coming.line = line;
  coming.place = place_of(HIPCPU_CALLER);
}

void hipcpu_sanitizer_kernel(const char* name) noexcept {
  const size_t end = strlen(name);
  const bool bracketed = end > 1 && name[0] == '(' && name[end - 1] == ')';
  const int shown = static_cast<int>(bracketed ? end - 2 : end);
  snprintf(kernel, sizeof kernel, "%.*s", shown, name + (bracketed ? 1 : 0));
}

}
