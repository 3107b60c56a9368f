#include "crash.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include "hiding.h"
#include "protocol.h"

namespace {

const Buffers* g_buffers;
const volatile uint64_t* g_nonce;
alignas(16) char g_stack[64 << 10];  // for an overflow of the main thread's own stack

// Whether the faulting access was a write. Only meaningful for SIGSEGV and SIGBUS.
bool was_write(const ucontext_t* context) {
#if defined(__x86_64__)
  constexpr int kErrorCode = 19;  // REG_ERR of <sys/ucontext.h>
  return (context->uc_mcontext.gregs[kErrorCode] & 2) != 0;
#else
  // The exception syndrome is one of the records behind the registers: magic, size, value.
  constexpr uint32_t kSyndromeMagic = 0x45535201;
  const unsigned char* record =
      reinterpret_cast<const unsigned char*>(context->uc_mcontext.__reserved);
  const unsigned char* end = record + sizeof(context->uc_mcontext.__reserved);
  while (record + 16 <= end) {
    const uint32_t* head = reinterpret_cast<const uint32_t*>(record);
    if (head[0] == kSyndromeMagic) {
      return (*reinterpret_cast<const uint64_t*>(record + 8) & (1u << 6)) != 0;
    }
    if (head[0] == 0 || head[1] < 16) break;
    record += head[1];
  }
  return false;
#endif
}

// Whether three quarters of the memory limit are in use, so that another quarter is refused.
bool memory_is_full() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  const size_t quarter = limit.rlim_cur / 4;
  void* probe = mmap(nullptr, quarter, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return true;
  munmap(probe, quarter);
  return false;
}

// Sends the report, then lets the signal kill the process. If several threads fault at once, the
// first one reports and the others wait for the end.
void report(int number, siginfo_t* info, void* context) {
  const Met met = number == SIGSEGV ? explain_fault(info->si_addr) : Met::kNothing;
  if (met == Met::kVisible) return;
  static int entered;
  while (__atomic_exchange_n(&entered, 1, __ATOMIC_SEQ_CST) != 0) pause();
  const bool has_address = number == SIGSEGV || number == SIGBUS;
  const Location where = has_address ? locate(*g_buffers, info->si_addr)
                                     : Location{protocol::kElsewhere, -1, 0};
  int64_t flags = memory_is_full() ? protocol::kFlagFull : 0;
  if (has_address && was_write(static_cast<const ucontext_t*>(context))) {
    flags |= protocol::kFlagWrite;
  }
  if (met == Met::kFromHost) flags |= protocol::kFlagHost;
  if (met == Met::kOtherCall) flags |= protocol::kFlagOtherCall;
  const protocol::Message message = {
      protocol::kMagic, protocol::kFault, *g_nonce,
      {protocol::kSignal, number, where.place, where.tensor, where.offset, flags}};
  send(protocol::kControlFd, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
  signal(number, SIG_DFL);
  raise(number);  // blocked here, so it is delivered on return
}

}  // namespace

void report_crashes(const Buffers* buffers, const volatile uint64_t* nonce) {
  g_buffers = buffers;
  g_nonce = nonce;
  stack_t stack = {};
  stack.ss_sp = g_stack;
  stack.ss_size = sizeof g_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
  for (int number : fatal) sigaction(number, &action, nullptr);
}
