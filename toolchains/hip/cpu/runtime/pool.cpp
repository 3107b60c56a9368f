// Helper threads start with the first launch that needs them, not when this library is loaded,
// since the process may fork later. They are detached and idle in a futex: exit waits for none.
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lock.h"
#include "observer.h"

namespace hipcpu {

namespace {

constexpr uint32_t kMaxWorkers = 256;
constexpr int kSpins = 2000;  // about 50 µs: back-to-back launches find the helpers awake
// Below this many threads in a grid, waking a helper takes longer than running them.
constexpr uint64_t kWorthSharing = 2048;

struct Pool {
  pid_t process;        // helpers do not survive a fork
  uint32_t helpers;
  uint32_t generation;  // futex; counts the jobs given to helpers
  uint32_t busy;        // futex; helpers that have not finished the job
  Job* job;
};
Pool pool;

Lock launches;  // one launch at a time uses the pool

// Waits until the word differs from `old`.
uint32_t wait_for_change(uint32_t* word, uint32_t old) {
  for (int spin = 0;; ++spin) {
    const uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (now != old) return now;
    if (spin >= kSpins) futex_wait(word, old);
  }
}

void* help(void*) {
  for (uint32_t seen = 0;;) {
    seen = wait_for_change(&pool.generation, seen);
    run_blocks(pool.job);
    __atomic_sub_fetch(&pool.busy, 1, __ATOMIC_ACQ_REL);
    futex_wake(&pool.busy, 1);
  }
}

// Helpers take no signals: those are for the program that loaded the library.
void start_helpers() {
  pool = Pool{getpid(), 0, 0, 0, nullptr};
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const uint32_t wanted = worker_count() - 1;
  for (uint32_t i = 0; i < wanted; ++i) {
    pthread_t thread;
    // If the sandbox allows no more threads, fewer share the work.
    if (pthread_create(&thread, nullptr, help, nullptr) != 0) break;
    pthread_detach(thread);
    ++pool.helpers;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

uint32_t usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  uint32_t count = 0;
  const unsigned long* words = reinterpret_cast<const unsigned long*>(&set);
  for (size_t i = 0; i < sizeof set / sizeof *words; ++i) {
    count += static_cast<uint32_t>(__builtin_popcountl(words[i]));
  }
  return count == 0 ? 1 : count < kMaxWorkers ? count : kMaxWorkers;
}

uint32_t read_worker_count() {
  const char* text = getenv("KABUILD_CPU_WORKERS");
  if (text == nullptr || *text == '\0') return usable_processors();
  char* end = nullptr;
  const long count = strtol(text, &end, 10);
  if (*end == '\0' && count >= 1 && count <= static_cast<long>(kMaxWorkers)) {
    return static_cast<uint32_t>(count);
  }
  fprintf(stderr, "hipcpu: ignoring KABUILD_CPU_WORKERS: '%s' is not a number from 1 to %u\n",
          text, kMaxWorkers);
  return usable_processors();
}

bool run_shared(Job* job) {
  pool.job = job;
  __atomic_store_n(&pool.busy, pool.helpers, __ATOMIC_RELEASE);
  __atomic_add_fetch(&pool.generation, 1, __ATOMIC_RELEASE);
  futex_wake(&pool.generation, static_cast<int>(pool.helpers));
  const bool ran = run_blocks(job);
  for (uint32_t busy = pool.helpers; busy != 0;) {
    busy = __atomic_load_n(&pool.busy, __ATOMIC_ACQUIRE);
    if (busy != 0) wait_for_change(&pool.busy, busy);
  }
  return ran || job->next_block >= job->blocks;
}

}  // namespace

uint32_t worker_count() {
  static uint32_t count;
  if (count == 0) count = read_worker_count();
  return count;
}

bool run_job(Job* job) {
  launches.take();
  const bool sharing = job->blocks > 1 && job->blocks * job->threads > kWorthSharing &&
                       worker_count() > 1 && !kObserved;
  if (sharing && pool.process != getpid()) start_helpers();
  const bool ran = sharing && pool.helpers != 0 ? run_shared(job) : run_blocks(job);
  launches.leave();
  return ran;
}

}  // namespace hipcpu
