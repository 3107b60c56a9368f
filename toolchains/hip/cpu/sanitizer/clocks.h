// Which of two accesses comes before the other, however the threads are scheduled.
//
// Within a block, barriers order everything, and exchanges order the lanes that took part. Between
// blocks, and between waves that share no barrier, an atomic operation after a fence makes order:
// a thread that reads it knows what came before the fence. Blocks run one after the other, so one
// number, a time, stands for everything that was released until then. So a race may be missed, but
// ordered accesses are never reported.
#pragma once

#include "../runtime/worker.h"

namespace hipcpu {

/// Who accessed memory, and when: after how many barriers of its block, exchanges of its lane, and
/// fences of all threads.
struct Stamp {
  uint32_t serial;  // of the block among all that ever ran, from 1; 0 stands for no access
  uint32_t epoch;
  uint32_t clock;
  uint32_t time;
  uint32_t code;    // offset of the instruction in the kernel's library
  uint16_t thread;
  uint16_t atomic;
};

/// The block and the thread that run now.
struct Now {
  uint32_t serial;
  uint32_t launch;  // serial of the last block of earlier launches
  uint32_t epoch;
  uint32_t time;
  uint32_t wave_shift;
};
extern Now now;

void begin_launch(const Job& job);
void begin_block(uint64_t block, uint32_t wave_shift);
void pass_barrier(uint32_t threads);
void meet_lanes(uint32_t wave, uint64_t lanes);

/// `device`: for other blocks too.
void pass_fence(bool device);
/// The time that an atomic write by the current thread publishes; 0 if it publishes nothing.
uint32_t release();
/// The current thread has read what was published at that time.
void acquire(uint32_t time);

Stamp stamp(uint32_t code, bool atomic);
/// Whether the access happened before the current thread's next one.
bool comes_before(const Stamp& access);

}  // namespace hipcpu
