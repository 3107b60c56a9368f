// Where a program begins: what a C library's crt1.o does, for glibc 2.34 and later.
        .text
        .globl _start
        .type _start, %function
_start:
#if defined(__x86_64__)
        xorl %ebp, %ebp
        movq %rdx, %r9          // rtld_fini
        popq %rsi               // argc
        movq %rsp, %rdx         // argv
        andq $-16, %rsp
        pushq %rax
        pushq %rsp              // stack end
        xorl %r8d, %r8d         // fini
        xorl %ecx, %ecx         // init
        movq main@GOTPCREL(%rip), %rdi
        callq *__libc_start_main@GOTPCREL(%rip)
        hlt
#elif defined(__aarch64__)
        mov x29, #0
        mov x30, #0
        mov x5, x0              // rtld_fini
        ldr x1, [sp]            // argc
        add x2, sp, #8          // argv
        mov x6, sp              // stack end
        adrp x0, main
        add x0, x0, :lo12:main
        mov x3, #0              // init
        mov x4, #0              // fini
        bl __libc_start_main
        brk #1
#endif
        .size _start, .-_start

// Identifies this program to __cxa_atexit.
        .data
        .p2align 3
        .globl __dso_handle
        .hidden __dso_handle
__dso_handle:
        .quad 0
        .section .note.GNU-stack, "", %progbits
