/* What compiled CPU kernels and the CPU driver agree on.
 *
 * samepage-cc emits one shared object for a set of kernels; src/device/cpu loads it and calls a
 * kernel once per work-group. Both sides include this file and nothing else of each other. A change
 * of anything here changes SP_CPU_ABI_VERSION, which is part of every cache key and of every
 * program binary.
 *
 * Scratch memory of one work-group, SP_CPU_SCRATCH_ALIGN aligned, given by the caller:
 *
 *     0                      static __local variables of the kernel
 * (sp_kernel_info.local_static_bytes)
 *     ...                    memory behind __local pointer arguments, placed by the driver
 *     launch->local_bytes    context: values of work-items that live across a barrier
 *
 * The context takes sp_kernel_code.context_fixed_bytes
 * + sp_kernel_code.context_item_bytes * (work-items of the largest group, rounded up to
 * SP_CPU_CONTEXT_ROUND) bytes. local_bytes is a multiple of SP_CPU_SCRATCH_ALIGN.
 */
#ifndef SP_COMPILER_CPU_ABI_H
#define SP_COMPILER_CPU_ABI_H

#include <stdint.h>

#define SP_CPU_ABI_VERSION 1u

/* long16 and double16 need 128 (OpenCL C 3.0, 6.3.5), more than a cache line does. */
#define SP_CPU_SCRATCH_ALIGN 128u

/* Context arrays are padded to whole vectors of the widest type: 64 work-items. */
#define SP_CPU_CONTEXT_ROUND 64u

/* A kernel's symbol in the shared object is this prefix and the kernel's name. */
#define SP_CPU_KERNEL_SYMBOL_PREFIX "sp_kernel_"

/* Present where the program has program-scope variables with initial values other than zero:
 * void (unsigned char *globals), writes them into zeroed memory of sp_program_info.globals_bytes.
 */
#define SP_CPU_GLOBALS_INIT_SYMBOL "sp_globals_init"

/* What every work-group of one NDRange command shares. Read-only for kernels. The compiler
 * addresses the members by offset: append only, with a new ABI version. */
struct sp_cpu_launch {
    uint32_t work_dim;         /* 1 to 3 */
    uint32_t reserved;         /* 0, which compiled code relies on */
    uint64_t global_offset[3]; /* unused dimensions: 0 */
    uint64_t global_size[3];   /* work-items; unused dimensions: 1 */
    uint64_t local_size[3];    /* work-items of a full group (get_enqueued_local_size) */
    uint64_t num_groups[3];    /* the last of a dimension may be smaller */
    const unsigned char *args; /* argument block: sp_arg_info.offset. Pointers are 8 bytes; a
                                  __local pointer is given as its offset into scratch (8 bytes) */
    unsigned char *globals;    /* program-scope variables in the global address space */
    uint64_t local_bytes;      /* where the context starts in scratch */
    /* Takes one printf record (below) and returns what printf returns, 0 or -1. Any thread. */
    int32_t (*print)(const struct sp_cpu_launch *launch, const char *format, const void *record,
                     uint64_t record_bytes);
};

/* Runs the work-group (group_x, group_y, group_z), each below num_groups. Never blocks. Changes
 * only memory that the kernel's source changes, and scratch. */
typedef void sp_cpu_kernel_fn(const struct sp_cpu_launch *launch, uint64_t group_x,
                              uint64_t group_y, uint64_t group_z, unsigned char *scratch);

/* A printf record: for each argument after the format one header, then the value's bytes, padded to
 * a multiple of 8. A scalar has one lane. Three-component vectors have 3 lanes and no padding lane.
 */
enum sp_print_kind {
    SP_PRINT_INTEGER = 0,
    SP_PRINT_FLOAT = 1,   /* half, float or double by lane_bytes */
    SP_PRINT_POINTER = 2, /* %p, and %s: a zero-terminated string that lives as long as the code */
};
struct sp_print_argument {
    uint8_t kind;        /* enum sp_print_kind */
    uint8_t lanes;       /* 1, 2, 3, 4, 8, 16 */
    uint16_t lane_bytes; /* 1, 2, 4, 8 */
    uint32_t reserved;   /* 0 */
};

#endif
