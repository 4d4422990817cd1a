/* What can be asked about kernels, and about a kernel on a device. Reads immutable things only, but
 * for the arguments of the kernel, which is used by one thread at a time. No lock.
 */
#include <string.h>

#include "api/info.h"
#include "api/program_internal.h"

#include <CL/cl_ext.h>

/* Preferred multiple where no code says more: work-items of 4 bytes in a vector register. */

CL_API_ENTRY cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel, cl_kernel_info param_name,
                                                size_t param_value_size, void *param_value,
                                                size_t *param_value_size_ret)
{
    struct sp_query query = {param_value_size, param_value, param_value_size_ret};
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    switch (param_name) {
    case CL_KERNEL_FUNCTION_NAME:
        return sp_query_reply_string(&query, kernel->info->name);
    case CL_KERNEL_NUM_ARGS:
        return sp_query_reply(&query, &(cl_uint){kernel->info->num_args}, sizeof(cl_uint));
    case CL_KERNEL_REFERENCE_COUNT:
        return sp_query_reply(&query, &(cl_uint){sp_object_handles(&kernel->object)},
                              sizeof(cl_uint));
    case CL_KERNEL_CONTEXT:
        return sp_query_reply(&query, &kernel->context, sizeof(cl_context));
    case CL_KERNEL_PROGRAM:
        return sp_query_reply(&query, &kernel->program, sizeof(cl_program));
    case CL_KERNEL_ATTRIBUTES:
        /* Only a program made from its source has them. */
        return sp_query_reply_string(&query, kernel->program->origin == SP_PROGRAM_FROM_BINARY
                                                 ? ""
                                                 : kernel->info->attributes);
    default:
        return CL_INVALID_VALUE;
    }
}

/* --- A kernel on a device ------------------------------------------------------------------ */

/* The device that a query means: one of the kernel's program, or its only one for NULL. */
static cl_int resolve_device(cl_kernel kernel, cl_device_id *device)
{
    cl_program program = kernel->program;
    if (!*device && program->num_devices == 1)
        *device = program->devices[0];
    return *device && sp_program_device_index(program, *device) < program->num_devices
               ? CL_SUCCESS
               : CL_INVALID_DEVICE;
}

/* Static local variables, and the local arguments that are set. */
static cl_ulong local_bytes(cl_kernel kernel)
{
    cl_ulong bytes = kernel->info->local_static_bytes;
    for (cl_uint i = 0; i < kernel->info->num_args; i++) {
        const struct sp_arg_info *arg = &kernel->info->args[i];
        uint64_t size;
        if (arg->kind != SP_ARG_LOCAL || !kernel->args[i].is_set)
            continue;
        memcpy(&size, kernel->arg_block + arg->offset, sizeof(size));
        bytes += size;
    }
    return bytes;
}

static size_t preferred_multiple(cl_kernel kernel, cl_device_id device)
{
    const struct sp_kernel_target *target = sp_kernel_target_find(kernel, device);
    uint32_t multiple = target ? sp_executable_preferred_multiple(
                                     target->executable, device->device->root, target->info)
                               : 0;
    return multiple ? multiple : device->device->info.preferred_multiple;
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                         cl_kernel_work_group_info param_name,
                                                         size_t param_value_size, void *param_value,
                                                         size_t *param_value_size_ret)
{
    struct sp_query query = {param_value_size, param_value, param_value_size_ret};
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    cl_int error = resolve_device(kernel, &device);
    if (error)
        return error;
    const struct sp_kernel_info *info = kernel->info;
    switch (param_name) {
    case CL_KERNEL_WORK_GROUP_SIZE:
        return sp_query_reply(&query, &(size_t){device->device->info.max_work_group_size},
                              sizeof(size_t));
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE: {
        size_t size[3] = {info->reqd_local_size[0], info->reqd_local_size[1],
                          info->reqd_local_size[2]};
        return sp_query_reply(&query, size, sizeof(size));
    }
    case CL_KERNEL_LOCAL_MEM_SIZE:
        return sp_query_reply(&query, &(cl_ulong){local_bytes(kernel)}, sizeof(cl_ulong));
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
        return sp_query_reply(&query, &(size_t){preferred_multiple(kernel, device)},
                              sizeof(size_t));
    case CL_KERNEL_PRIVATE_MEM_SIZE:
        return sp_query_reply(&query, &(cl_ulong){info->private_bytes}, sizeof(cl_ulong));
    default: /* CL_KERNEL_GLOBAL_WORK_SIZE is for built-in kernels, of which there are none */
        return CL_INVALID_VALUE;
    }
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device,
                                                        cl_kernel_sub_group_info param_name,
                                                        size_t input_value_size,
                                                        const void *input_value,
                                                        size_t param_value_size, void *param_value,
                                                        size_t *param_value_size_ret)
{
    (void)param_name;
    (void)input_value_size;
    (void)input_value;
    (void)param_value_size;
    (void)param_value;
    (void)param_value_size_ret;
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    cl_int error = resolve_device(kernel, &device);
    /* No device has sub-groups. */
    return error ? error : CL_INVALID_OPERATION;
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSubGroupInfoKHR(
    cl_kernel kernel, cl_device_id device, cl_kernel_sub_group_info param_name,
    size_t input_value_size, const void *input_value, size_t param_value_size, void *param_value,
    size_t *param_value_size_ret)
{
    return clGetKernelSubGroupInfo(kernel, device, param_name, input_value_size, input_value,
                                   param_value_size, param_value, param_value_size_ret);
}

/* --- Arguments ----------------------------------------------------------------------------- */

static cl_kernel_arg_address_qualifier address_qualifier(const struct sp_arg_info *arg)
{
    switch (arg->kind) {
    case SP_ARG_GLOBAL:
        return CL_KERNEL_ARG_ADDRESS_GLOBAL;
    case SP_ARG_CONSTANT:
        return CL_KERNEL_ARG_ADDRESS_CONSTANT;
    case SP_ARG_LOCAL:
        return CL_KERNEL_ARG_ADDRESS_LOCAL;
    default:
        return CL_KERNEL_ARG_ADDRESS_PRIVATE;
    }
}

/* SP_ARG_TYPE_ bits have the values of their OpenCL names. */
static cl_kernel_arg_type_qualifier type_qualifier(const struct sp_arg_info *arg)
{
    _Static_assert(SP_ARG_TYPE_CONST == CL_KERNEL_ARG_TYPE_CONST &&
                       SP_ARG_TYPE_RESTRICT == CL_KERNEL_ARG_TYPE_RESTRICT &&
                       SP_ARG_TYPE_VOLATILE == CL_KERNEL_ARG_TYPE_VOLATILE,
                   "type qualifiers are passed on as they are");
    return arg->kind == SP_ARG_VALUE ? CL_KERNEL_ARG_TYPE_NONE : arg->type_qualifiers;
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel kernel, cl_uint arg_index,
                                                   cl_kernel_arg_info param_name,
                                                   size_t param_value_size, void *param_value,
                                                   size_t *param_value_size_ret)
{
    struct sp_query query = {param_value_size, param_value, param_value_size_ret};
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    if (arg_index >= kernel->info->num_args)
        return CL_INVALID_ARG_INDEX;
    if (param_name < CL_KERNEL_ARG_ADDRESS_QUALIFIER || param_name > CL_KERNEL_ARG_NAME)
        return CL_INVALID_VALUE;
    /* Only a build with -cl-kernel-arg-info tells. */
    if (!kernel->targets[0].kernel_arg_info)
        return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    const struct sp_arg_info *arg = &kernel->info->args[arg_index];
    switch (param_name) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
        return sp_query_reply(&query, &(cl_kernel_arg_address_qualifier){address_qualifier(arg)},
                              sizeof(cl_kernel_arg_address_qualifier));
    case CL_KERNEL_ARG_ACCESS_QUALIFIER: /* no image and no pipe can be an argument */
        return sp_query_reply(&query, &(cl_kernel_arg_access_qualifier){CL_KERNEL_ARG_ACCESS_NONE},
                              sizeof(cl_kernel_arg_access_qualifier));
    case CL_KERNEL_ARG_TYPE_NAME:
        return sp_query_reply_string(&query, arg->type_name);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
        return sp_query_reply(&query, &(cl_kernel_arg_type_qualifier){type_qualifier(arg)},
                              sizeof(cl_kernel_arg_type_qualifier));
    default:
        return sp_query_reply_string(&query, arg->name);
    }
}
