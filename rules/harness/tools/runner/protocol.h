// The control protocol: the same layout as protocol.py, which explains it.
#pragma once
#include <stdint.h>

namespace protocol {

constexpr uint32_t kMagic = 0x3152424B;  // "KBR1"
constexpr int kControlFd = 3;
constexpr int kFilterFd = 4;
constexpr int kDriverFd = 5;
constexpr int kOrdersFd = 6;
constexpr int kRecordFd = 7;
constexpr int kValues = 6;

enum Kind : uint32_t {
  kStart = 1,
  kLoad = 2,
  kScratch = 3,
  kRun = 4,
  kEmpty = 5,
  kBye = 6,
  kReplay = 8,
  kArm = 9,
  kGate = 10,
  kShut = 11,
  kWait = 12,
  kReady = 16,
  kDone = 17,
  kFault = 18,
  kGone = 19,
  kQueued = 20,
};

enum FaultCode : int64_t {
  kMachine = 1,
  kLoading = 2,
  kMissingEntry = 3,
  kLaunch = 4,
  kSignal = 5,
  kMemory = 7,
  kCopied = 17,
  kUnmapped = 18,
};

enum Place : int64_t {
  kElsewhere = 0,
  kInput = 1,
  kInputGap = 2,
  kOutput = 3,
  kOutputGap = 4,
  kControl = 5,
  kWorkspace = 6,
};

constexpr int64_t kFlagWrite = 1;
constexpr int64_t kFlagFull = 2;
constexpr int64_t kFlagHost = 4;
constexpr int64_t kFlagOtherCall = 8;

// How the calls of a batch are guarded: bits.
constexpr int64_t kHide = 1;
constexpr int64_t kBound = 2;

struct Message {
  uint32_t magic;
  uint32_t kind;
  uint64_t nonce;
  int64_t values[kValues];
};
static_assert(sizeof(Message) == 64, "the layout of protocol.py");

}  // namespace protocol
