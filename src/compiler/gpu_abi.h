/* What compiled kernels for GPUs (PTX now) and the GPU's driver agree on.
 *
 * samepage-cc emits one module for a set of kernels: for a target "nvptx64:sm_90" PTX text with its
 * terminating zero, which is counted in the image's size. Both sides include this file and nothing
 * else of each other. A change of anything here changes SP_GPU_ABI_VERSION, which is part of every
 * cache key and of every program binary.
 *
 * An entry has one parameter block, which the driver passes as it is (CUDA:
 * CU_LAUNCH_PARAM_BUFFER_POINTER):
 *
 *     0                        the argument block: sp_arg_info.offset. Pointers are 8 bytes; a
 *                              __local pointer is given as its offset into dynamic local memory
 *                              (8 bytes, a multiple of SP_GPU_LOCAL_ALIGN)
 *     sp_gpu_launch_offset()   struct sp_gpu_launch
 *
 * Work-groups are blocks, work-items are threads: local id = thread index, group id = block index +
 * sp_gpu_launch.group_first. The driver launches whole blocks of local_size; work-items outside the
 * NDRange return at once (a block's barrier does not count threads that have ended, from sm_70 on),
 * and get_local_size at an edge is what is left of it.
 *
 * Local memory: static __local variables are placed by the module itself, in front of dynamic
 * memory, as long as they fit SP_GPU_STATIC_LOCAL_BYTES. More than that the target's assembler does
 * not take: then they lie in the first sp_gpu_local_front() bytes of dynamic memory, and what is
 * behind __local arguments follows.
 */
#ifndef SP_COMPILER_GPU_ABI_H
#define SP_COMPILER_GPU_ABI_H

#include <stdint.h>

#define SP_GPU_ABI_VERSION 3u

/* long16 and double16 need 128 (OpenCL C 3.0, 6.3.5). */
#define SP_GPU_LOCAL_ALIGN 128u

/* ptxas takes no more in .shared variables, whatever the GPU has (48 KiB: CUDA programming guide,
 * compute capabilities, "maximum amount of shared memory per thread block" without opt-in). */
#define SP_GPU_STATIC_LOCAL_BYTES (48u << 10)

/* A kernel's entry is this prefix and the kernel's name. */
#define SP_GPU_KERNEL_SYMBOL_PREFIX "sp_kernel_"

/* Present where it pays, in code for one local size: an entry with the same parameter block, a
 * block of which is the two groups group_first + 2 * block index and the next in the first
 * dimension. It may be launched with half as many blocks where num_groups[0] is even and all are
 * one launch. */
#define SP_GPU_PAIR_SYMBOL_PREFIX "sp_pair_"

/* Present where the program has program-scope variables with initial values other than zero: an
 * entry without arguments (its block is a struct sp_gpu_launch of which only `globals` counts),
 * launched with one work-item, which writes them into zeroed memory of
 * sp_program_info.globals_bytes. */
#define SP_GPU_GLOBALS_INIT_SYMBOL "sp_globals_init"

enum {
    /* Set where global_size is no multiple of local_size in some dimension. */
    SP_GPU_NON_UNIFORM = 1,
};

/* What every work-item of one launch shares. An NDRange with more groups than one launch may have
 * is several launches, which differ in group_first alone. The compiler addresses the members by
 * offset: append only, with a new ABI version. */
struct sp_gpu_launch {
    uint32_t work_dim;         /* 1 to 3 */
    uint32_t flags;            /* SP_GPU_ bits */
    uint64_t global_offset[3]; /* unused dimensions: 0 */
    uint64_t global_size[3];   /* work-items of the whole NDRange; unused dimensions: 1 */
    uint32_t local_size[3];    /* work-items of a full group, the block's size */
    uint32_t num_groups[3];    /* of the whole NDRange; the last of a dimension may be smaller */
    uint32_t group_first[3];   /* the group that block 0 0 0 of this launch is */
    uint32_t reserved;         /* 0 */
    uint64_t globals;          /* device address of the program-scope variables, or 0 */
    uint64_t print_buffer;     /* device address of a struct sp_gpu_print_buffer; 0: printf is -1 */
    uint64_t atomic_first;     /* the part of the window whose atomics of all-devices scope go to */
    uint64_t atomic_bytes;     /* the atomic unit: address - first < bytes; 0 bytes: none */
    uint64_t atomic_unit;      /* device address of a struct sp_gpu_unit; 0: none */
};

/* --- The atomic unit (docs/atomic-unit.md) -------------------------------------------------------
 */

/* What it can do with a word of 32 bits, or, with SP_UNIT_WIDE, of 64. The old value is the answer.
 * Operands of 32 bits come in the lower half of 64, those of the signed minimum and maximum with
 * their sign; old values have zeros above. */
enum sp_unit_operation {
    SP_UNIT_EXCHANGE = 1,
    SP_UNIT_ADD,
    SP_UNIT_AND,
    SP_UNIT_OR,
    SP_UNIT_XOR,
    SP_UNIT_MIN_SIGNED,
    SP_UNIT_MAX_SIGNED,
    SP_UNIT_MIN_UNSIGNED,
    SP_UNIT_MAX_UNSIGNED,
    SP_UNIT_COMPARE_EXCHANGE,
    SP_UNIT_ADD_FLOAT,
    SP_UNIT_MIN_FLOAT,
    SP_UNIT_MAX_FLOAT,
    SP_UNIT_LAST = SP_UNIT_MAX_FLOAT,
    SP_UNIT_WIDE = 32,
};

/* A power of two. More than can be under way usefully: one round over the bus takes 3 us, and the
 * server serves a few in each microsecond. */
#define SP_UNIT_SLOTS 4096u

/* Every word has SP_UNIT_PAYLOAD_BITS bits of payload, and above them the tag of the turn. */
#define SP_UNIT_PAYLOAD_BITS 48u

/* A request, written by the GPU, and its reply. Payloads:
 *     request 0   address
 *             1   bits 0 to 47 of the operand
 *             2   bits 48 to 63 of the operand; from bit 16 on the operation; from bit 24 on bits 0
 *                 to 23 of the value to compare with
 *             3   bits 24 to 63 of that
 *     reply   0   bits 0 to 47 of the old value
 *             1   bits 48 to 63 of it */
struct sp_unit_slot {
    uint64_t request[4];
    uint64_t reply[2];
    uint64_t unused[2];
};

/* Request number n (from 0) is in slot n % SP_UNIT_SLOTS, and this is the tag of its words: never
 * that of the turn before. Zeroed memory holds no request. */
static inline uint64_t sp_unit_tag(uint64_t number)
{
    return (number / SP_UNIT_SLOTS + 1) & 0xffff;
}

/* The GPU's side, in its own memory; zero at first. */
struct sp_gpu_unit {
    uint64_t slots;                /* device address of SP_UNIT_SLOTS struct sp_unit_slot */
    uint64_t tickets;              /* requests so far */
    uint64_t patience;             /* looks after which a request is given up; 0: never */
    uint32_t turns[SP_UNIT_SLOTS]; /* whose turn a slot is: that of request turn * SP_UNIT_SLOTS +
                                      slot. Counts modulo 2^32 */
};

/* What a parameter block may be in the PTX that samepage-cc writes, of ISA 6.3 to 7.8: 4352 bytes.
 * (PTX ISA, directive .entry. From ISA 8.1 on it is 32764 bytes, which drivers before 530 do not
 * read.) What is left of it is for arguments: CL_DEVICE_MAX_PARAMETER_SIZE. */
#define SP_GPU_MAX_BLOCK_BYTES 4352u
#define SP_GPU_MAX_ARGS_BYTES (SP_GPU_MAX_BLOCK_BYTES - (uint32_t)sizeof(struct sp_gpu_launch))

/* Where the launch record starts, from sp_kernel_info.args_bytes. */
static inline uint64_t sp_gpu_launch_offset(uint64_t args_bytes)
{
    return (args_bytes + 7) & ~UINT64_C(7);
}

/* Bytes at the start of dynamic local memory that static variables take, from
 * sp_kernel_info.local_static_bytes. A multiple of SP_GPU_LOCAL_ALIGN. */
static inline uint64_t sp_gpu_local_front(uint64_t local_static_bytes)
{
    if (local_static_bytes <= SP_GPU_STATIC_LOCAL_BYTES)
        return 0;
    return (local_static_bytes + SP_GPU_LOCAL_ALIGN - 1) & ~(uint64_t)(SP_GPU_LOCAL_ALIGN - 1);
}

/* Records of printf, appended by work-items in any order, one after another from `records` on. The
 * driver sets position to 0 before a launch, and reads when the kernel has ended: from 0 on, while
 * a whole record header lies below both position and capacity and its `bytes` are not 0. A record
 * that did not fit is dropped, and so are all that come later: printf returned -1. */
struct sp_gpu_print_buffer {
    uint64_t capacity; /* bytes at `records`, a multiple of 8; set by the driver */
    uint64_t position; /* bytes asked for so far; may end beyond capacity */
    unsigned char records[];
};

/* One record: this, then for each argument after the format what cpu_abi.h says of a printf record
 * (struct sp_print_argument and the value, padded to 8). Addresses in it, the format's as well as
 * those of %s, are device addresses of zero-terminated strings, valid as long as the module; how
 * much may be read behind the zero is not said. */
struct sp_gpu_print_record {
    uint64_t bytes; /* of the record with this header, a multiple of 8; 0: the end */
    uint64_t format;
};

#endif
