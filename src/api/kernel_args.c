/* What a kernel is given before it is enqueued: arguments, and what it may reach beside them.
 *
 * The argument block is kept in launch form all the time, so that an enqueue only copies it.
 * Nothing is changed before all is checked. No lock: a kernel is used by one thread at a time (the
 * specification).
 */
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/mem.h"
#include "api/program_internal.h"
#include "runtime/context.h"
#include "util/alloc.h"

/* Writes a value of an argument that was checked. */
static void store(cl_kernel kernel, cl_uint index, const void *value, bool is_svm, cl_mem mem)
{
    const struct sp_arg_info *info = &kernel->info->args[index];
    struct sp_kernel_arg *arg = &kernel->args[index];
    memcpy(kernel->arg_block + info->offset, value, info->size);
    kernel->num_unset -= !arg->is_set;
    kernel->num_mems += (mem != NULL) - (arg->mem != NULL);
    *arg = (struct sp_kernel_arg){.is_set = true, .is_svm = is_svm, .mem = mem};
}

/* A buffer for a global or constant pointer: NULL, or a pointer to a cl_mem, which may be NULL. */
static cl_int set_buffer(cl_kernel kernel, cl_uint index, size_t arg_size, const void *arg_value)
{
    cl_mem mem = NULL;
    void *address = NULL;
    if (arg_size != sizeof(cl_mem))
        return CL_INVALID_ARG_SIZE;
    if (arg_value)
        memcpy(&mem, arg_value, sizeof(mem));
    if (mem) {
        cl_int error = sp_buffer_check(kernel->context, mem);
        if (error)
            return error;
        address = mem->address;
    }
    store(kernel, index, &address, false, mem);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
                                               const void *arg_value)
{
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    if (arg_index >= kernel->info->num_args)
        return CL_INVALID_ARG_INDEX;
    const struct sp_arg_info *info = &kernel->info->args[arg_index];
    switch (info->kind) {
    case SP_ARG_GLOBAL:
    case SP_ARG_CONSTANT:
        return set_buffer(kernel, arg_index, arg_size, arg_value);
    case SP_ARG_LOCAL:
        if (arg_value)
            return CL_INVALID_ARG_VALUE;
        if (!arg_size)
            return CL_INVALID_ARG_SIZE;
        store(kernel, arg_index, &(uint64_t){arg_size}, false, NULL);
        return CL_SUCCESS;
    default:
        if (!arg_value)
            return CL_INVALID_ARG_VALUE;
        if (arg_size != info->size)
            return CL_INVALID_ARG_SIZE;
        store(kernel, arg_index, arg_value, false, NULL);
        return CL_SUCCESS;
    }
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index,
                                                         const void *arg_value)
{
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    if (!sp_context_svm_any(kernel->context))
        return CL_INVALID_OPERATION;
    if (arg_index >= kernel->info->num_args)
        return CL_INVALID_ARG_INDEX;
    enum sp_arg_kind kind = kernel->info->args[arg_index].kind;
    if (kind != SP_ARG_GLOBAL && kind != SP_ARG_CONSTANT)
        return CL_INVALID_ARG_VALUE;
    /* Any pointer may be right: into SVM, into system memory where that is shared, or one that the
     * kernel does not follow. */
    store(kernel, arg_index, &arg_value, true, NULL);
    return CL_SUCCESS;
}

/* The whole set, in place of the one before. */
static cl_int set_svm_pointers(cl_kernel kernel, size_t bytes, const void *pointers)
{
    void **copy = NULL;
    if (!sp_context_svm_any(kernel->context))
        return CL_INVALID_OPERATION;
    if ((bytes && !pointers) || bytes % sizeof(void *))
        return CL_INVALID_VALUE;
    if (bytes) {
        copy = sp_alloc(bytes);
        if (!copy)
            return CL_OUT_OF_HOST_MEMORY;
        memcpy(copy, pointers, bytes);
    }
    free(kernel->svm_pointers);
    kernel->svm_pointers = copy;
    kernel->num_svm_pointers = bytes / sizeof(void *);
    return CL_SUCCESS;
}

static cl_int set_fine_grain_system(cl_kernel kernel, size_t bytes, const void *value)
{
    cl_bool wanted;
    if (!value || bytes != sizeof(wanted))
        return CL_INVALID_VALUE;
    memcpy(&wanted, value, sizeof(wanted));
    if (wanted && !(sp_context_svm_any(kernel->context) & SP_SVM_SYSTEM))
        return CL_INVALID_OPERATION;
    kernel->fine_grain_system = wanted != CL_FALSE;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelExecInfo(cl_kernel kernel,
                                                    cl_kernel_exec_info param_name,
                                                    size_t param_value_size,
                                                    const void *param_value)
{
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    switch (param_name) {
    case CL_KERNEL_EXEC_INFO_SVM_PTRS:
        return set_svm_pointers(kernel, param_value_size, param_value);
    case CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM:
        return set_fine_grain_system(kernel, param_value_size, param_value);
    default:
        return CL_INVALID_VALUE;
    }
}
