/* What is known of a program and its kernels once they are compiled: the answer of samepage-cc, the
 * content of a program binary, the source of clGetKernelArgInfo and the plan of a launch.
 *
 * samepage-cc fills these in and encodes them; the library decodes them as foreign input. A decoded
 * sp_program_info owns one arena; nothing in it is freed on its own. Immutable once decoded, so it
 * is read by any thread without a lock.
 */
#ifndef SP_COMPILER_KERNEL_INFO_H
#define SP_COMPILER_KERNEL_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_wire_writer;
struct sp_wire_reader;

enum sp_arg_kind {
    SP_ARG_VALUE = 0,    /* bytes copied into the argument block */
    SP_ARG_GLOBAL = 1,   /* pointer to global memory */
    SP_ARG_CONSTANT = 2, /* pointer to constant memory */
    SP_ARG_LOCAL = 3,    /* pointer to local memory: clSetKernelArg gives its size */
};

/* Type qualifiers, as CL_KERNEL_ARG_TYPE_CONST and its kin count them. */
enum { SP_ARG_TYPE_CONST = 1, SP_ARG_TYPE_RESTRICT = 2, SP_ARG_TYPE_VOLATILE = 4 };

/* What a kernel does with the memory behind a pointer argument, found in its IR. */
enum {
    SP_EFFECT_READ = 1,
    SP_EFFECT_WRITE = 2,
    SP_EFFECT_UNKNOWN = 4, /* the pointer escapes: take read and write, and do not narrow */
};

struct sp_arg_info {
    enum sp_arg_kind kind;
    uint32_t size;  /* bytes in the argument block, what clSetKernelArg must be given; pointers 8 */
    uint32_t align; /* bytes, a power of two */
    uint32_t offset; /* bytes from the start of the argument block */
    uint32_t type_qualifiers;
    uint32_t effect;       /* SP_EFFECT_ bits; 0 for values and for pointers that are not used */
    const char *name;      /* as written in the source */
    const char *type_name; /* as OpenCL writes it: "float*", "uint4", "struct s" */
};

struct sp_kernel_info {
    const char *name;
    /* CL_KERNEL_ATTRIBUTES: blank-separated, as in the source; "" for none */
    const char *attributes;
    uint32_t num_args;
    struct sp_arg_info *args;
    uint32_t args_bytes;         /* size of the argument block */
    uint32_t reqd_local_size[3]; /* reqd_work_group_size, or 0 0 0 */
    uint32_t hint_local_size[3]; /* work_group_size_hint, or 0 0 0 */
    uint64_t local_static_bytes; /* __local variables inside the kernel, each at its alignment */
    uint64_t private_bytes;      /* estimate per work-item, for CL_KERNEL_PRIVATE_MEM_SIZE */
    bool has_barrier;            /* a work-group barrier or collective is reachable */
    bool loops_over_private;     /* has private arrays, and loops that may be unrolled */
    bool uses_globals;           /* reads or writes program-scope variables */
    bool follows_pointers;       /* may reach memory through pointers loaded from memory */
    bool writes_followed;        /* and may change it there */
    bool has_shared_atomics;     /* may read, modify and write atomically for all devices */
};

struct sp_program_info {
    uint32_t num_kernels;
    struct sp_kernel_info *kernels; /* sorted by name (strcmp) */
    uint64_t globals_bytes;         /* program-scope variables in the global address space */
    void *arena;                    /* private: what the strings and arrays lie in */
};

/* What code generation adds for one kernel in one shared object. */
struct sp_kernel_code {
    const char *name;
    uint64_t context_fixed_bytes; /* see cpu_abi.h */
    uint64_t context_item_bytes;
    uint32_t preferred_multiple; /* lanes of a vector, for
                                    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE */
};

/* Appends `info` to `writer`. Errors are kept in the writer. */
void sp_program_info_encode(const struct sp_program_info *info, struct sp_wire_writer *writer);

/* Reads what sp_program_info_encode wrote, checking every size, offset and string as foreign input.
 * 0 and *info, to be ended with sp_program_info_destroy; -EBADMSG where the bytes are not such;
 * -ENOMEM. */
int sp_program_info_decode(struct sp_wire_reader *reader, struct sp_program_info **info);

/* Takes NULL. */
void sp_program_info_destroy(struct sp_program_info *info);

/* The kernel of that name, or NULL. */
const struct sp_kernel_info *sp_program_info_find(const struct sp_program_info *info,
                                                  const char *name);

#endif
