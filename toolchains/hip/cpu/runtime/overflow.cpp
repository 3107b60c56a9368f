// Reports that a GPU thread has used up its stack. A program that handles SIGSEGV itself keeps its
// handler. It gets a signal stack on each host thread, which any handler needs in order to run.
#include "overflow.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

namespace hipcpu {

namespace {

// Returning repeats the access, now with the default action, so the signal kills the process.
void report_overflow(int number, siginfo_t* info, void*) {
  if (current_worker != nullptr && is_guard_page(*current_worker, info->si_addr)) {
    const Context& context = hipcpu_context;
    char line[256];
    const int length = snprintf(
        line, sizeof line,
        "hipcpu: stack overflow: the locals of block (%u,%u,%u) thread (%u,%u,%u) exceed %zu KiB\n",
        context.block.x, context.block.y, context.block.z, context.thread.x, context.thread.y,
        context.thread.z, kStackBytes >> 10);
    if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {
      // stderr cannot be written; the signal tells the parent.
    }
  }
  signal(number, SIG_DFL);
}

}  // namespace

void watch_for_overflow(Worker& worker) {
  stack_t stack = {};
  if (sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {
    stack.ss_sp = worker.signal_stack;
    stack.ss_size = sizeof worker.signal_stack;
    stack.ss_flags = 0;
    sigaltstack(&stack, nullptr);
  }
  struct sigaction action = {};
  if (sigaction(SIGSEGV, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_sigaction = report_overflow;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace hipcpu
