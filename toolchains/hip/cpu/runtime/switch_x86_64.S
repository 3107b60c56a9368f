// hipcpu_switch(save, to) for the System V ABI. One `ret` serves every switch. The return predictor
// is right, because fibers always switch in the same place (yield_fiber in scheduler.cpp).
#if defined(__x86_64__)
        .text
        .p2align 4
        .globl hipcpu_switch
        .hidden hipcpu_switch
        .type hipcpu_switch, @function
hipcpu_switch:
        pushq %rbp
        pushq %rbx
        pushq %r12
        pushq %r13
        pushq %r14
        pushq %r15
        movq %rsp, (%rdi)
        movq %rsi, %rsp
        popq %r15
        popq %r14
        popq %r13
        popq %r12
        popq %rbx
        popq %rbp
        ret
        .size hipcpu_switch, .-hipcpu_switch
#endif
        .section .note.GNU-stack, "", %progbits
