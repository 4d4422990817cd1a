/* Kernels: making, copying and ending them, and their way to code. Arguments are in kernel_args.c,
 * queries in kernel_info.c, launches in enqueue_kernel.c.
 *
 * A kernel keeps the executables that it was created from, one for each device that its program was
 * built for, and so what a command of it needs: the program may be built anew only once the
 * application has let all kernels go, but their commands may still run then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/program_internal.h"
#include "util/alloc.h"

static void destroy(struct sp_object *object)
{
    cl_kernel kernel = (cl_kernel)object;
    for (cl_uint i = 0; i < kernel->num_targets; i++)
        sp_executable_unreference(kernel->targets[i].executable);
    free(kernel->targets);
    free(kernel->args);
    free(kernel->arg_block);
    free(kernel->svm_pointers);
    sp_object_unreference(&kernel->program->object);
    free(kernel);
}

/* --- Creation ------------------------------------------------------------------------------ */

static bool same_definition(const struct sp_kernel_info *a, const struct sp_kernel_info *b)
{
    if (a->num_args != b->num_args || a->args_bytes != b->args_bytes)
        return false;
    for (uint32_t i = 0; i < a->num_args; i++) {
        const struct sp_arg_info *first = &a->args[i], *second = &b->args[i];
        if (first->kind != second->kind || first->size != second->size ||
            first->offset != second->offset || strcmp(first->type_name, second->type_name) != 0)
            return false;
    }
    return true;
}

/* With the program's lock held: the kernel of that name in each executable that there is. `targets`
 * has room for all devices; the references come later. */
static cl_int find_targets(cl_program program, const char *name, struct sp_kernel_target *targets,
                           cl_uint *num_targets)
{
    bool is_built = false;
    *num_targets = 0;
    for (cl_uint i = 0; i < program->num_devices; i++) {
        const struct sp_build *build = program->builds[i];
        if (!build || build->status != CL_BUILD_SUCCESS || !build->executable)
            continue;
        is_built = true;
        const struct sp_kernel_info *info =
            sp_program_info_find(sp_executable_info(build->executable), name);
        if (!info)
            continue;
        if (*num_targets && !same_definition(targets[0].info, info))
            return CL_INVALID_KERNEL_DEFINITION;
        targets[(*num_targets)++] =
            (struct sp_kernel_target){.device = program->devices[i],
                                      .executable = build->executable,
                                      .info = info,
                                      .non_uniform_groups = build->non_uniform_groups,
                                      .kernel_arg_info = build->kernel_arg_info};
    }
    if (!is_built)
        return CL_INVALID_PROGRAM_EXECUTABLE;
    return *num_targets ? CL_SUCCESS : CL_INVALID_KERNEL_NAME;
}

/* A kernel without arguments, not attached yet. Takes `targets` over on success only. */
static cl_int make(cl_program program, struct sp_kernel_target *targets, cl_uint num_targets,
                   cl_kernel *result)
{
    const struct sp_kernel_info *info = targets[0].info;
    cl_kernel kernel = sp_alloc(sizeof(*kernel));
    if (!kernel)
        return CL_OUT_OF_HOST_MEMORY;
    kernel->args = sp_alloc_array(info->num_args, sizeof(*kernel->args));
    kernel->arg_block = sp_alloc(info->args_bytes);
    if (!kernel->args || !kernel->arg_block) {
        free(kernel->args);
        free(kernel->arg_block);
        free(kernel);
        return CL_OUT_OF_HOST_MEMORY;
    }
    sp_object_init(&kernel->object, SP_OBJECT_KERNEL, destroy);
    kernel->program = program;
    sp_object_reference(&program->object);
    kernel->context = program->context;
    kernel->targets = targets;
    kernel->num_targets = num_targets;
    for (cl_uint i = 0; i < num_targets; i++)
        sp_executable_reference(targets[i].executable);
    kernel->info = info;
    kernel->num_unset = info->num_args;
    kernel->fine_grain_system = true;
    *result = kernel;
    return CL_SUCCESS;
}

/* With the program's lock held: from now on the program cannot be built anew. */
static void attach(cl_kernel kernel)
{
    atomic_init(&kernel->is_attached, true);
    kernel->program->num_kernels++;
}

static cl_int create_locked(cl_program program, const char *name, cl_kernel *kernel)
{
    cl_uint num_targets;
    struct sp_kernel_target *targets = sp_alloc_array(program->num_devices, sizeof(*targets));
    if (!targets)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int error = find_targets(program, name, targets, &num_targets);
    if (!error)
        error = make(program, targets, num_targets, kernel);
    if (error)
        free(targets);
    else
        attach(*kernel);
    return error;
}

/* Whether some device has an executable. With the program's lock held. */
static const struct sp_program_info *first_info(cl_program program)
{
    for (cl_uint i = 0; i < program->num_devices; i++) {
        const struct sp_build *build = program->builds[i];
        if (build && build->status == CL_BUILD_SUCCESS && build->executable)
            return sp_executable_info(build->executable);
    }
    return NULL;
}

CL_API_ENTRY cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char *kernel_name,
                                                  cl_int *errcode_ret)
{
    cl_kernel kernel = NULL;
    cl_int error = CL_INVALID_PROGRAM;
    if (sp_object_is(program, SP_OBJECT_PROGRAM)) {
        pthread_mutex_lock(&program->lock);
        if (!first_info(program))
            error = CL_INVALID_PROGRAM_EXECUTABLE;
        else if (!kernel_name)
            error = CL_INVALID_VALUE;
        else
            error = create_locked(program, kernel_name, &kernel);
        pthread_mutex_unlock(&program->lock);
    }
    sp_error_reply(errcode_ret, error);
    return kernel;
}

/* The application's handle goes; with the last one the kernel is no longer attached. */
static void release(cl_kernel kernel)
{
    cl_program program = kernel->program;
    sp_object_reference(&kernel->object);
    sp_object_release(&kernel->object);
    if (!sp_object_handles(&kernel->object) &&
        atomic_exchange_explicit(&kernel->is_attached, false, memory_order_relaxed)) {
        pthread_mutex_lock(&program->lock);
        program->num_kernels--;
        pthread_mutex_unlock(&program->lock);
    }
    sp_object_unreference(&kernel->object);
}

/* The kernels that have one definition on all devices, into `kernels`; *count is how many were
 * made, on failure too: they are then to be released without the lock. With the program's lock
 * held. */
static cl_int create_all_locked(cl_program program, const struct sp_program_info *info,
                                cl_kernel *kernels, cl_uint *count)
{
    *count = 0;
    for (uint32_t i = 0; i < info->num_kernels; i++) {
        cl_kernel kernel;
        cl_int error = create_locked(program, info->kernels[i].name, &kernel);
        if (error == CL_INVALID_KERNEL_DEFINITION)
            continue;
        if (error)
            return error;
        kernels[(*count)++] = kernel;
    }
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clCreateKernelsInProgram(cl_program program, cl_uint num_kernels,
                                                         cl_kernel *kernels,
                                                         cl_uint *num_kernels_ret)
{
    cl_uint count = 0;
    cl_int error = CL_SUCCESS;
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    pthread_mutex_lock(&program->lock);
    const struct sp_program_info *info = first_info(program);
    if (!info)
        error = CL_INVALID_PROGRAM_EXECUTABLE;
    else if (kernels && num_kernels < info->num_kernels)
        error = CL_INVALID_VALUE;
    else if (kernels)
        error = create_all_locked(program, info, kernels, &count);
    else
        count = info->num_kernels;
    pthread_mutex_unlock(&program->lock);
    if (error) {
        for (cl_uint i = 0; i < count; i++) {
            release(kernels[i]);
            kernels[i] = NULL;
        }
        return error;
    }
    if (num_kernels_ret)
        *num_kernels_ret = count;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clRetainKernel(cl_kernel kernel)
{
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    sp_object_retain(&kernel->object);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel)
{
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    release(kernel);
    return CL_SUCCESS;
}

/* --- Copies -------------------------------------------------------------------------------- */

static cl_int copy_state(cl_kernel to, cl_kernel from)
{
    if (from->num_svm_pointers) {
        size_t bytes = from->num_svm_pointers * sizeof(void *);
        to->svm_pointers = sp_alloc(bytes);
        if (!to->svm_pointers)
            return CL_OUT_OF_HOST_MEMORY;
        memcpy(to->svm_pointers, from->svm_pointers, bytes);
    }
    to->num_svm_pointers = from->num_svm_pointers;
    to->fine_grain_system = from->fine_grain_system;
    to->num_unset = from->num_unset;
    to->num_mems = from->num_mems;
    memcpy(to->args, from->args, from->info->num_args * sizeof(*from->args));
    memcpy(to->arg_block, from->arg_block, from->info->args_bytes);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_kernel CL_API_CALL clCloneKernel(cl_kernel source_kernel, cl_int *errcode_ret)
{
    cl_kernel kernel = NULL;
    cl_int error = CL_INVALID_KERNEL;
    if (!sp_object_is(source_kernel, SP_OBJECT_KERNEL))
        goto end;
    error = CL_OUT_OF_HOST_MEMORY;
    cl_uint count = source_kernel->num_targets;
    struct sp_kernel_target *targets = sp_alloc_array(count, sizeof(*targets));
    if (!targets)
        goto end;
    memcpy(targets, source_kernel->targets, count * sizeof(*targets));
    error = make(source_kernel->program, targets, count, &kernel);
    if (error) {
        free(targets);
        goto end;
    }
    error = copy_state(kernel, source_kernel);
    if (error) {
        sp_object_release(&kernel->object);
        kernel = NULL;
        goto end;
    }
    pthread_mutex_lock(&kernel->program->lock);
    attach(kernel);
    pthread_mutex_unlock(&kernel->program->lock);
end:
    sp_error_reply(errcode_ret, error);
    return kernel;
}

/* --- Code ---------------------------------------------------------------------------------- */

const struct sp_kernel_target *sp_kernel_target_find(cl_kernel kernel, cl_device_id device)
{
    for (; device; device = device->parent)
        for (cl_uint i = 0; i < kernel->num_targets; i++)
            if (kernel->targets[i].device == device)
                return &kernel->targets[i];
    return NULL;
}

cl_int sp_kernel_code_get(cl_kernel kernel, cl_device_id device, const uint64_t local_size[3],
                          struct sp_code_kernel **code, struct sp_globals_place *globals)
{
    const struct sp_kernel_target *target = sp_kernel_target_find(kernel, device);
    if (!target)
        return CL_INVALID_PROGRAM_EXECUTABLE;
    switch (sp_executable_code(target->executable, device->device->root, target->info, local_size,
                               code, globals)) {
    case 0:
        return CL_SUCCESS;
    case -ENOMEM:
        return CL_OUT_OF_HOST_MEMORY;
    case -ENOSPC: /* for program-scope variables, on the device */
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    case -ENODEV:
        return CL_INVALID_PROGRAM_EXECUTABLE;
    default:
        return CL_OUT_OF_RESOURCES;
    }
}
