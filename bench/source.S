/* The OpenCL C sources as strings of the program. */
    .macro source name, file
    .globl \name
    .type \name, @object
\name:
    .incbin "\file"
    .byte 0
    .size \name, . - \name
    .endm

    .section .rodata
    source bench_source, kernels.cl
    source bench_arrays_source, arrays.cl
    source bench_grids_source, grids.cl
    source bench_numbers_source, numbers.cl
    .section .note.GNU-stack, "", %progbits
