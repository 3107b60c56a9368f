/* The bundle of code objects, where the code that clang makes for the host looks for it. */
    .section .hip_fatbin, "a", @progbits
    .globl __hip_fatbin
    .hidden __hip_fatbin
    .p2align 12
__hip_fatbin:
    .incbin "kernel.hipfb"
    .section .note.GNU-stack, "", @progbits
