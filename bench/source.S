/* kernels.cl as a string of the program. */
    .section .rodata
    .globl bench_source
    .type bench_source, %object
bench_source:
    .incbin "kernels.cl"
    .byte 0
    .size bench_source, . - bench_source
    .section .note.GNU-stack, "", %progbits
