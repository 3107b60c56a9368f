// Switches from one stack to another.
#pragma once

extern "C" {
/// Saves the callee-saved registers on the running stack and its stack pointer in `*save`, then
/// continues where the stack `to` was left. `to` is read before `*save` is written.
void hipcpu_switch(void** save, void* to);
}

namespace hipcpu {

#if defined(__x86_64__)
// rbp, rbx, r12-r15; then the return address; then the zero that ends a backtrace.
constexpr unsigned kReturnSlot = 6;
constexpr unsigned kFrameSlots = 8;
#elif defined(__aarch64__)
// x19-x28, x29 and x30 (where the switch returns to), d8-d15.
constexpr unsigned kReturnSlot = 11;
constexpr unsigned kFrameSlots = 20;
#else
#error "fibers need a context switch for this processor"
#endif

}  // namespace hipcpu
