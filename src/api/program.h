/* Programs and kernels, as the rest of src/api sees them. */
#ifndef SP_API_PROGRAM_H
#define SP_API_PROGRAM_H

#include <stdatomic.h>

#include <CL/cl.h>

#include "compiler/kernel_info.h"
#include "device/driver.h"

struct sp_globals_place;
#include "runtime/context.h"
#include "runtime/object.h"

struct sp_executable;

/* One kernel argument as clSetKernelArg left it. */
struct sp_kernel_arg {
    bool is_set;
    bool is_svm; /* set by clSetKernelArgSVMPointer */
    cl_mem mem;  /* a buffer argument, or NULL. No reference is held (the specification) */
};

/* A device that a kernel was built for. */
struct sp_kernel_target {
    cl_device_id device; /* one of the program's devices */
    /* Of the build that the kernel was created from: a reference is held */
    struct sp_executable *executable;
    const struct sp_kernel_info *info; /* lives in the executable */
    bool non_uniform_groups;           /* work-groups may differ in size */
    bool kernel_arg_info;              /* names and types of arguments may be told */
};

/* A kernel is used by one thread at a time (the specification), so it has no lock. */
struct _cl_kernel {
    struct sp_object object;
    atomic_bool is_attached; /* counted in program->num_kernels: until its last handle goes */
    cl_program program;      /* a reference is held */
    cl_context context;      /* the program's */
    struct sp_kernel_target *targets; /* num_targets of them, at least 1 */
    cl_uint num_targets;
    const struct sp_kernel_info *info; /* of the first target; the others' arguments are the same */
    struct sp_kernel_arg *args;        /* info->num_args */
    cl_uint num_unset;                 /* arguments that are not set yet */
    cl_uint num_mems;                  /* arguments that are buffers now */
    unsigned char *arg_block; /* info->args_bytes, laid out for launch: a buffer argument lies there
                                 as its address, a local one as its size in bytes */
    void **svm_pointers;      /* CL_KERNEL_EXEC_INFO_SVM_PTRS */
    size_t num_svm_pointers;
    bool fine_grain_system; /* CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM */
};

/* What `kernel` was built into for `device` or, failing that, for the device that it is a part of.
 * NULL: it was built for neither. */
const struct sp_kernel_target *sp_kernel_target_find(cl_kernel kernel, cl_device_id device);

/* The code of `kernel` for `device`, generated and loaded if it is not yet (this can take long),
 * and the program's program-scope variables (NULL where there are none). `local_size`: the size of
 * every work-group, for which there may be special code; NULL where they differ.
 * CL_INVALID_PROGRAM_EXECUTABLE where the program was not built for that device,
 * CL_OUT_OF_RESOURCES where code generation failed (the context is told why),
 * CL_OUT_OF_HOST_MEMORY. */
cl_int sp_kernel_code_get(cl_kernel kernel, cl_device_id device, const uint64_t local_size[3],
                          struct sp_code_kernel **code, struct sp_globals_place *globals);

#endif
