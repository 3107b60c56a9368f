// The native runner: holds one candidate library, and calls it when the judge says so.
//
//   hip-runner CANDIDATE LIBRARY...
//
// It starts inside its sandbox. The candidate shares this address space, so nothing here is
// secret, and the judge believes only what it can check.
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "call.h"
#include "candidate.h"
#include "clock.h"
#include "crash.h"
#include "gate.h"
#include "hiding.h"
#include "launches.h"
#include "mapping.h"
#include "protocol.h"

namespace {

using protocol::Message;

constexpr int kMostFds = 3;
constexpr int kNotSupported = 801;  // hipErrorNotSupported
constexpr size_t kMostInstructions = 1024;

// The current request, and what came with it.
struct Request {
  Message message;
  int fds[kMostFds];
  int fd_count;
};

Buffers g_buffers;
volatile uint64_t g_nonce;
bool g_awake;

void reply(uint32_t kind, const int64_t* values, int count) {
  Message message = {};
  message.magic = protocol::kMagic;
  message.kind = kind;
  message.nonce = g_nonce;
  for (int i = 0; i < count; ++i) message.values[i] = values[i];
  if (send(protocol::kControlFd, &message, sizeof message, MSG_NOSIGNAL) < 0) _exit(1);
}

[[noreturn]] void fail(protocol::FaultCode code, int64_t value, const char* text) {
  if (text != nullptr) {
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;  // the text is for people; the fault counts
  }
  const int64_t values[] = {code, value};
  reply(protocol::kFault, values, 2);
  _exit(1);
}

// Writes the two halves of an address over the placeholders of runners/lockdown.py.
void fill_in(sock_filter* instructions, size_t count, const void* address) {
  constexpr uint16_t kJumpEqual = BPF_JMP | BPF_JEQ | BPF_K;
  const uint64_t place = reinterpret_cast<uint64_t>(address);
  for (size_t i = 0; i < count; ++i) {
    if (instructions[i].code != kJumpEqual) continue;
    if (instructions[i].k == 0x4B425049) instructions[i].k = static_cast<uint32_t>(place);
    if (instructions[i].k == 0x4B425048) instructions[i].k = static_cast<uint32_t>(place >> 32);
  }
}

// Installs the system-call filter that the launcher has prepared.
void lock_down() {
  static sock_filter instructions[kMostInstructions];
  const ssize_t size = read(protocol::kFilterFd, instructions, sizeof instructions);
  close(protocol::kFilterFd);
  if (size <= 0) fail(protocol::kMachine, 0, "no system-call filter\n");
  sock_fprog program = {};
  program.len = static_cast<unsigned short>(size / sizeof *instructions);
  program.filter = instructions;
  fill_in(instructions, program.len, place_of_protection());
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    fail(protocol::kMachine, 0, "the system-call filter could not be installed\n");
  }
}

// Waits for a message. Busy-waits if the judge asks for that, since the time to wake up would be
// noise in its clock.
ssize_t wait_for_message(msghdr* header) {
  if (!g_awake) return recvmsg(protocol::kControlFd, header, MSG_CMSG_CLOEXEC);
  g_awake = false;
  for (;;) {
    const ssize_t size =
        recvmsg(protocol::kControlFd, header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (size >= 0 || (errno != EAGAIN && errno != EINTR)) return size;
  }
}

bool receive(Request* request) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFds)];
  iovec part = {&request->message, sizeof request->message};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  if (wait_for_message(&header) != sizeof request->message) return false;
  request->fd_count = 0;
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    const size_t bytes = rights->cmsg_len - CMSG_LEN(0);
    memcpy(request->fds, CMSG_DATA(rights), bytes);
    request->fd_count = static_cast<int>(bytes / sizeof(int));
  }
  g_nonce = request->message.nonce;
  return request->message.magic == protocol::kMagic;
}

void load_candidate(Candidate* candidate) {
  if (!load(candidate)) fail(protocol::kLoading, 0, dlerror());
}

void load_config(Candidate* candidate, const Request& request) {
  if (request.fd_count != kMostFds || !map_config(&g_buffers, request.fds)) {
    fail(protocol::kMemory, 0, "the buffers of the config cannot be mapped\n");
  }
  const ControlBlock* block = g_buffers.control();
  if (block->magic != kBlockMagic || block->version != kBlockVersion) _exit(1);
  if (!resolve(candidate, *block)) fail(protocol::kMissingEntry, 0, nullptr);
  const int64_t bytes = wanted_workspace(*candidate, *block);
  reply(protocol::kReady, &bytes, 1);
}

void load_scratch(const Request& request) {
  const int64_t* values = request.message.values;
  if (request.fd_count != 1 ||
      !map_scratch(&g_buffers, request.fds[0], values[0], values[1], values[2])) {
    fail(protocol::kMemory, 0, "the workspace cannot be mapped\n");
  }
  reply(protocol::kReady, nullptr, 0);
}

void assemble_for(const Candidate& candidate, uint32_t slot, Arguments* arguments) {
  const ControlBlock* block = g_buffers.control();
  const void* tensors[2 * kMostTensors];
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->inputs; ++i) tensors[count++] = g_buffers.input(i, slot);
  for (uint32_t i = 0; i < block->outputs; ++i) tensors[count++] = g_buffers.output(i, slot);
  // The judge has checked the number of arguments.
  if (!assemble(candidate, *block, tensors, g_buffers.workspace, stream(), arguments)) _exit(1);
}

// hipError_t is a 32-bit enumeration: the upper half of the register means nothing.
void check(int error) {
  if (error != 0) fail(protocol::kLaunch, error, nullptr);
}

[[noreturn]] void refuse_copy(uint64_t bytes, uint64_t allowed) {
  const int64_t values[] = {protocol::kCopied, static_cast<int64_t>(bytes),
                            static_cast<int64_t>(allowed)};
  reply(protocol::kFault, values, 3);
  _exit(1);
}

// Makes one call for each slot of the batch, up to the first error. The launches of call `left_out`
// have no effect; -1 for none. What it reads back is meaningless, so its copies are not bounded, but
// memory is hidden from its host code. All others are guarded as in a batch without such a call:
// else host code would do the kernels' work wherever a call beside it is left out.
int make_calls(const Candidate& candidate, int64_t calls, int64_t left_out, int64_t guarding) {
  const ControlBlock* block = g_buffers.control();
  int error = 0;
  for (int64_t i = 0; i < calls && error == 0; ++i) {
    const uint32_t slot = block->order()[i];
    Arguments arguments;
    assemble_for(candidate, slot, &arguments);
    if (i == left_out && !enable_launches(false)) return kNotSupported;
    const int64_t how = i == left_out && guarding != 0 ? protocol::kHide : guarding;
    if (!begin_guarded_call(&g_buffers, slot, how)) {
      fail(protocol::kUnmapped, 0, nullptr);
    }
    error = static_cast<int>(call(candidate.entry, &arguments));
    if (i == left_out) end_guarding();
    if (i == left_out) enable_launches(true);
  }
  return error;
}

void run(const Candidate& candidate, int64_t calls, int64_t left_out, int64_t guarding) {
  int64_t elapsed_ns = 0;
  check(start_clock());
  check(make_calls(candidate, calls, left_out, guarding));
  check(stop_clock(&elapsed_ns));
  end_guarding();
  const int64_t values[] = {calls, elapsed_ns};
  reply(protocol::kDone, values, 2);
}

void hold(const Request& request) {
  if (request.fd_count != 1) _exit(1);
  const char* problem = nullptr;
  const int64_t able = open_gate(request.fds[0], &problem);
  if (problem != nullptr) fail(protocol::kMachine, 0, problem);
  reply(protocol::kReady, &able, 1);
}

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int g_waited;  // the result of waiting for the device, reported on request
int64_t g_made[2];

// Answers once all calls are queued behind the gate, then waits until the device is idle.
void run_gated(const Candidate& candidate, const int64_t* asked) {
  const int64_t calls = asked[0], ticket = asked[1];
  int64_t queued[] = {calls, 0};
  check(shut_gate(ticket));
  check(start_clock());
  const int64_t started = now_ns();
  check(make_calls(candidate, calls, -1, 0));
  queued[1] = now_ns() - started;
  check(end_gate(ticket));
  reply(protocol::kQueued, queued, 2);
  g_made[0] = calls;
  g_waited = pass_gate(ticket, &g_made[1]);
}

// Records the calls and replays them as one graph. Reports no calls if they cannot be recorded.
void run_recorded(const Candidate& candidate, int64_t calls) {
  int64_t values[] = {0, 0};
  if (start_recording()) {
    const int error = make_calls(candidate, calls, -1, 0);
    if (replay(&values[1]) && error == 0) values[0] = calls;
  }
  reply(protocol::kDone, values, 2);
}

void obey(Candidate* candidate, const Request& request) {
  switch (request.message.kind) {
    case protocol::kStart:
      load_candidate(candidate);
      return reply(protocol::kReady, nullptr, 0);
    case protocol::kLoad:
      return load_config(candidate, request);
    case protocol::kScratch:
      return load_scratch(request);
    case protocol::kRun: {
      const int64_t* values = request.message.values;
      return run(*candidate, values[0], values[1], values[2]);
    }
    case protocol::kArm:
      g_awake = true;
      return reply(protocol::kReady, nullptr, 0);
    case protocol::kGate:
      return hold(request);
    case protocol::kShut:
      return run_gated(*candidate, request.message.values);
    case protocol::kWait:
      check(g_waited);
      return reply(protocol::kDone, g_made, 2);
    case protocol::kReplay:
      return run_recorded(*candidate, request.message.values[0]);
    case protocol::kEmpty:
      return run(*candidate, 0, -1, 0);
    case protocol::kBye:
      reply(protocol::kGone, nullptr, 0);
      _exit(0);  // without exit handlers: the candidate may have installed some
    default:
      _exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  lock_down();
  for (int i = 2; i < argc; ++i) {
    if (dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL) == nullptr) fail(protocol::kMachine, 0, dlerror());
  }
  const char* problem = open_clock();
  if (problem == nullptr) problem = filter_launches(argv[1]);
  if (problem != nullptr) fail(protocol::kMachine, 0, problem);
  close(protocol::kDriverFd);
  open_hiding(refuse_copy);
  Candidate candidate = {};
  candidate.path = argv[1];
  report_crashes(&g_buffers, &g_nonce);
  reply(protocol::kReady, nullptr, 0);
  Request request;
  while (receive(&request)) obey(&candidate, request);
  return 0;
}
