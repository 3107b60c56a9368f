// Two pages that the judge shares with a runner: the same layout as runners/launch_pages.py.
//
// The runner can only read the orders. It writes the record, which is evidence, not proof: by
// changing it a candidate can accuse itself, or hide a refused launch, which did not run anyway.
#pragma once
#include <stdint.h>

constexpr uint32_t kOrdersMagic = 0x4F4C424B;  // "KBLO"
constexpr uint32_t kRecordMagic = 0x524C424B;  // "KBLR"
constexpr uint32_t kPagesVersion = 1;
constexpr int kMostNoted = 62;

enum Rule : uint32_t {
  kAny = 0,  // all kernels run
  kOwn = 1,  // the candidate's own kernels run, and PyTorch's copies and fills
};

struct Orders {
  uint32_t magic;
  uint32_t version;
  uint32_t rule;
  uint32_t reserved;
  uint64_t epoch;      // a change restarts the count of launches at zero
  uint64_t limit;      // kernels beyond this number are not launched, though calls succeed
  char harness[8160];  // the text of the harness's own kernels; empty if there are none
};
static_assert(sizeof(Orders) == 8192, "the layout of launch_pages.py");

enum Kind : uint32_t { kKernel = 1, kCopy = 2, kRefused = 3 };

struct Noted {
  uint64_t launches;
  uint32_t kind;
  char name[116];
};
static_assert(sizeof(Noted) == 128, "the layout of launch_pages.py");

struct Record {
  uint32_t magic;  // set once the filter is in force
  uint32_t version;
  uint64_t kernels;  // launches of each kind since the start
  uint64_t copies;
  uint64_t graphs;
  uint64_t left_out;  // launches of kernels and graphs beyond the limit
  uint64_t refused;
  uint32_t noted;  // how many of the entries below are in use
  uint32_t reserved;
  uint8_t padding[200];
  Noted entries[kMostNoted];
};
static_assert(sizeof(Record) == 8192, "the layout of launch_pages.py");

// Maps both pages and closes the descriptors. False on failure.
bool attach(int orders_fd, int record_fd);

// Null until `attach` has succeeded.
const Orders* orders();
Record* record();

// Makes an entry for a kernel of this name, and returns its index; -1 if all are in use.
int note(const char* name, Kind kind);
