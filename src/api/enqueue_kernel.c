/* Launches: clEnqueueNDRangeKernel, clEnqueueTask, clEnqueueNativeKernel, and the local size that
 * would be chosen.
 *
 * The one fast path of the API: checks read the queue, the kernel and the device; one allocation
 * holds the command with a copy of the argument block behind it; the only lock is the queue's.
 * Checks come in the order of the specification's list of errors; the first one that fails decides,
 * and nothing was changed by then.
 */
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/mem.h"
#include "api/program_internal.h"
#include "runtime/command.h"
#include "svm/check.h"
#include "svm/region.h"

#include <CL/cl_ext.h>

#define MAX_DIMENSIONS 3u

/* --- Checks -------------------------------------------------------------------------------- */

/* Queue and kernel, and what the kernel is on that queue's device. */
static cl_int check_objects(cl_command_queue queue, cl_kernel kernel,
                            const struct sp_kernel_target **target)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    if (!sp_object_is(kernel, SP_OBJECT_KERNEL))
        return CL_INVALID_KERNEL;
    /* A kernel of another context has no target on this device, or the wrong one: that is said
     * first. */
    if (kernel->context != queue->context)
        return CL_INVALID_CONTEXT;
    *target = sp_kernel_target_find(kernel, queue->device);
    return *target ? CL_SUCCESS : CL_INVALID_PROGRAM_EXECUTABLE;
}

static bool is_zero_sized(cl_uint work_dim, const size_t *global_size)
{
    bool is_zero = !global_size;
    for (cl_uint i = 0; !is_zero && i < work_dim; i++)
        is_zero = global_size[i] == 0;
    return is_zero;
}

/* Fills in what does not depend on the local size. */
static cl_int set_global(struct sp_ndrange *range, cl_uint work_dim, const size_t *global_offset,
                         const size_t *global_size)
{
    if (work_dim < 1 || work_dim > MAX_DIMENSIONS)
        return CL_INVALID_WORK_DIMENSION;
    *range = (struct sp_ndrange){
        .work_dim = work_dim, .global_size = {1, 1, 1}, .local_size = {1, 1, 1}};
    for (cl_uint i = 0; i < work_dim; i++) {
        size_t last;
        range->global_offset[i] = global_offset ? global_offset[i] : 0;
        range->global_size[i] = global_size ? global_size[i] : 0;
        if (__builtin_add_overflow(range->global_offset[i], range->global_size[i], &last))
            return CL_INVALID_GLOBAL_OFFSET;
    }
    return CL_SUCCESS;
}

/* How many work-items there are must be a number. */
static cl_int check_global_size(const struct sp_ndrange *range)
{
    uint64_t total;
    return __builtin_mul_overflow(range->global_size[0], range->global_size[1], &total) ||
                   __builtin_mul_overflow(total, range->global_size[2], &total)
               ? CL_INVALID_GLOBAL_WORK_SIZE
               : CL_SUCCESS;
}

static bool is_uniform(const struct sp_ndrange *range)
{
    for (unsigned i = 0; i < range->work_dim; i++)
        if (range->global_size[i] % range->local_size[i])
            return false;
    return true;
}

/* A local size that the application gave, or that the source requires. */
static cl_int check_local_size(cl_kernel kernel, const struct sp_device *device,
                               const struct sp_ndrange *range)
{
    const uint32_t *required = kernel->info->reqd_local_size;
    uint64_t total = 1, max = device->info.max_work_group_size;
    for (unsigned i = 0; i < MAX_DIMENSIONS; i++) {
        if (!range->local_size[i])
            return CL_INVALID_WORK_GROUP_SIZE;
        if (range->local_size[i] > device->info.max_item_sizes[i])
            return CL_INVALID_WORK_ITEM_SIZE;
        total *= range->local_size[i]; /* at most 2^30 * 2^10 before the next check */
        if (total > max)
            return CL_INVALID_WORK_GROUP_SIZE;
        if (required[0] && range->local_size[i] != required[i])
            return CL_INVALID_WORK_GROUP_SIZE;
    }
    return CL_SUCCESS;
}

/* Puts the local size into the range: given, required or chosen. */
static cl_int set_local(cl_kernel kernel, const struct sp_kernel_target *target,
                        struct sp_device *device, const size_t *local_size,
                        struct sp_ndrange *range)
{
    const struct sp_kernel_info *info = target->info;
    bool is_given = local_size || info->reqd_local_size[0];
    if (!is_given) {
        device->ops->suggest_local_size(device, info, range, range->local_size);
        return CL_SUCCESS;
    }
    for (unsigned i = 0; i < range->work_dim; i++)
        range->local_size[i] = local_size ? local_size[i] : info->reqd_local_size[i];
    cl_int error = check_local_size(kernel, device, range);
    if (!error && !target->non_uniform_groups && !is_uniform(range))
        error = CL_INVALID_WORK_GROUP_SIZE;
    return error;
}

/* The arguments as they are now suit the device. */
static cl_int check_args(cl_kernel kernel, cl_device_id device)
{
    for (cl_uint i = 0; kernel->num_mems && i < kernel->info->num_args; i++) {
        cl_mem mem = kernel->args[i].mem;
        if (!mem)
            continue;
        /* It may have been released since it was set: the kernel does not keep it. */
        if (!sp_object_is(mem, SP_OBJECT_MEM))
            return CL_INVALID_KERNEL_ARGS;
        cl_int error = sp_buffer_check_alignment(device, mem);
        if (error)
            return error;
    }
    return CL_SUCCESS;
}

/* SVM pointers need a device that has SVM. */
static cl_int check_svm(cl_kernel kernel, cl_device_id device)
{
    if (device->device->info.svm_levels)
        return CL_SUCCESS;
    for (cl_uint i = 0; i < kernel->info->num_args; i++)
        if (kernel->args[i].is_svm)
            return CL_INVALID_OPERATION;
    return CL_SUCCESS;
}

/* Local memory of static variables and of arguments fits the device. */
static cl_int check_local_memory(cl_kernel kernel, const struct sp_device *device)
{
    uint64_t bytes = kernel->info->local_static_bytes;
    for (cl_uint i = 0; i < kernel->info->num_args; i++) {
        const struct sp_arg_info *arg = &kernel->info->args[i];
        uint64_t size;
        if (arg->kind != SP_ARG_LOCAL)
            continue;
        memcpy(&size, kernel->arg_block + arg->offset, sizeof(size));
        if (__builtin_add_overflow(bytes, size, &bytes))
            return CL_OUT_OF_RESOURCES;
    }
    return bytes > device->info.local_memory_bytes ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

/* --- Kernels ------------------------------------------------------------------------------- */

/* The command keeps the kernel, and so its code, and the buffers alive. */
static void use_objects(struct sp_command *command, cl_kernel kernel)
{
    sp_command_use(command, &kernel->object);
    for (cl_uint i = 0, left = kernel->num_mems; left; i++)
        if (kernel->args[i].mem) {
            sp_command_use(command, &kernel->args[i].mem->object);
            left--;
        }
}

/* What a kernel does with an argument, from its IR and from how the buffer was made. */
static enum sp_access access_of(const struct sp_kernel_info *kernel, const struct sp_arg_info *info,
                                cl_mem mem)
{
    bool may_write = info->effect & (SP_EFFECT_WRITE | SP_EFFECT_UNKNOWN);
    /* A pointer loaded from memory may lead back to what an argument points to. */
    may_write |= kernel->writes_followed;
    if (info->kind == SP_ARG_CONSTANT || (mem && mem->flags & CL_MEM_READ_ONLY))
        may_write = false;
    return may_write ? SP_ACCESS_READ_WRITE : SP_ACCESS_READ;
}

/* `effect`: what of it the code says for sure. */
static void touch_range(struct sp_command *command, const void *address, size_t bytes,
                        enum sp_access access, uint32_t effect)
{
    unsigned before = command->coherence.count;
    sp_command_touch(command, address, bytes, access);
    if (command->coherence.count == before)
        return;
    struct sp_range_use *range = &command->coherence.ranges[before];
    range->is_read = effect & SP_EFFECT_READ;
    range->is_written = effect & SP_EFFECT_WRITE;
}

struct declared {
    struct sp_command *command;
    unsigned count; /* its ranges so far */
};

static void touch_undeclared(const void *address, void *data)
{
    const struct declared *declared = data;
    struct sp_command *command = declared->command;
    for (unsigned i = 0; i < declared->count; i++)
        if (command->coherence.ranges[i].region->start == address)
            return;
    unsigned before = command->coherence.count;
    touch_range(command, address, 0, SP_ACCESS_READ_WRITE, 0);
    if (command->coherence.count > before)
        command->coherence.ranges[before].is_undeclared = true;
}

/* A careless program's kernel may follow pointers to anything. */
static void touch_all(struct sp_command *command)
{
    struct declared declared = {command, command->coherence.count};
    if (sp_arena_for_each_address(command->event.context->arena, touch_undeclared, &declared))
        command->is_short_of_memory = true;
}

/* Says what memory the kernel uses: program-scope variables, its pointer arguments, as its IR uses
 * them, and what was named by clSetKernelExecInfo. An SVM pointer stands for its whole region. */
static void touch_ranges(struct sp_command *command, cl_kernel kernel)
{
    if (command->work.kernel.globals)
        touch_range(command, command->work.kernel.globals, 0, SP_ACCESS_READ_WRITE, 0);
    for (cl_uint i = 0; i < kernel->info->num_args; i++) {
        const struct sp_arg_info *info = &kernel->info->args[i];
        cl_mem mem = kernel->args[i].mem;
        void *address;
        if (info->kind != SP_ARG_GLOBAL && info->kind != SP_ARG_CONSTANT)
            continue;
        /* An argument that is not used itself still names memory that other pointers may lead to:
         * those that are loaded from memory, and for a sub-buffer those to its sister, which lies
         * beside it. */
        bool is_part = mem && mem->parent;
        if (!info->effect && !kernel->info->follows_pointers && !is_part)
            continue;
        memcpy(&address, kernel->arg_block + info->offset, sizeof(address));
        if (address)
            touch_range(command, address, mem ? mem->size : 0,
                        is_part && !info->effect ? SP_ACCESS_READ_WRITE
                                                 : access_of(kernel->info, info, mem),
                        info->effect & SP_EFFECT_UNKNOWN ? 0 : info->effect);
    }
    /* What was named is reached through pointers that the kernel loads, or else not at all. */
    enum sp_access named = kernel->info->writes_followed ? SP_ACCESS_READ_WRITE : SP_ACCESS_READ;
    for (size_t i = 0; i < kernel->num_svm_pointers; i++)
        touch_range(command, kernel->svm_pointers[i], 0, named, 0);
    if (sp_check_is_on && sp_check_forgives && kernel->info->follows_pointers)
        touch_all(command);
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_command_type type,
                             cl_uint work_dim, const size_t *global_offset,
                             const size_t *global_size, const size_t *local_size,
                             cl_uint num_events, const cl_event *events, cl_event *event)
{
    const struct sp_kernel_target *target;
    struct sp_ndrange range;
    struct sp_code_kernel *code = NULL;
    struct sp_globals_place globals = {0};
    cl_int error = check_objects(queue, kernel, &target);
    if (error)
        return error;
    struct sp_device *device = queue->device->device;
    if (kernel->num_unset)
        return CL_INVALID_KERNEL_ARGS;
    error = set_global(&range, work_dim, global_offset, global_size);
    bool is_empty = !error && is_zero_sized(work_dim, global_size);
    if (!error && !is_empty) {
        error = check_global_size(&range);
        if (!error)
            error = set_local(kernel, target, device, local_size, &range);
    }
    if (!error)
        error = check_args(kernel, queue->device);
    if (!error && (events || num_events))
        error = sp_wait_list_check(queue->context, num_events, events);
    if (!error)
        error = check_svm(kernel, queue->device);
    if (!error)
        error = check_local_memory(kernel, device);
    if (!error && !is_empty)
        error = sp_kernel_code_get(kernel, queue->device,
                                   is_uniform(&range) ? range.local_size : NULL, &code, &globals);
    if (error)
        return error;

    size_t args_bytes = is_empty ? 0 : kernel->info->args_bytes;
    struct sp_command *command =
        sp_command_create(queue, type, num_events, 1 + kernel->num_mems, args_bytes);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    use_objects(command, kernel);
    if (!is_empty) {
        command->work.kind = SP_WORK_KERNEL;
        command->work.kernel.kernel = code;
        command->work.kernel.range = range;
        command->work.kernel.args = command->extra;
        command->work.kernel.globals = globals.address;
        command->values = globals.values;
        if (args_bytes)
            memcpy(command->extra, kernel->arg_block, args_bytes);
    }
    command->has_work = !is_empty;
    command->kernel_name = kernel->info->name;
    if (queue->context->is_shared && !is_empty)
        touch_ranges(command, kernel);
    return sp_command_enqueue(command, num_events, events, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(
    cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
    const size_t *global_work_offset, const size_t *global_work_size, const size_t *local_work_size,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
    return enqueue_kernel(command_queue, kernel, CL_COMMAND_NDRANGE_KERNEL, work_dim,
                          global_work_offset, global_work_size, local_work_size,
                          num_events_in_wait_list, event_wait_list, event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event)
{
    static const size_t one = 1;
    return enqueue_kernel(command_queue, kernel, CL_COMMAND_TASK, 1, NULL, &one, &one,
                          num_events_in_wait_list, event_wait_list, event);
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSizeKHR(
    cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
    const size_t *global_work_offset, const size_t *global_work_size,
    size_t *suggested_local_work_size)
{
    const struct sp_kernel_target *target;
    struct sp_ndrange range;
    cl_int error = check_objects(command_queue, kernel, &target);
    if (error)
        return error;
    if (kernel->num_unset)
        return CL_INVALID_KERNEL_ARGS;
    error = set_global(&range, work_dim, global_work_offset, global_work_size);
    if (error)
        return error;
    if (is_zero_sized(work_dim, global_work_size) || check_global_size(&range))
        return CL_INVALID_GLOBAL_WORK_SIZE;
    error = check_args(kernel, command_queue->device);
    if (!error)
        error = check_svm(kernel, command_queue->device);
    if (!error && !suggested_local_work_size)
        error = CL_INVALID_VALUE;
    if (!error)
        error = set_local(kernel, target, command_queue->device->device, NULL, &range);
    for (cl_uint i = 0; !error && i < work_dim; i++)
        suggested_local_work_size[i] = range.local_size[i];
    return error;
}

/* --- Functions of the host ----------------------------------------------------------------- */

static cl_int check_native(cl_command_queue queue, void(CL_CALLBACK *user_func)(void *),
                           const void *args, size_t args_bytes, cl_uint num_mems,
                           const cl_mem *mems, const void **mem_places)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    if (!user_func)
        return CL_INVALID_VALUE;
    if (!args ? args_bytes || num_mems : !args_bytes)
        return CL_INVALID_VALUE;
    if (num_mems ? !mems || !mem_places : mems || mem_places)
        return CL_INVALID_VALUE;
    /* A function of the host can only run on a device in the host's process. */
    if (!queue->device->device->info.is_cpu || queue->device->device->info.own_memory)
        return CL_INVALID_OPERATION;
    for (cl_uint i = 0; i < num_mems; i++) {
        uintptr_t place = (uintptr_t)mem_places[i] - (uintptr_t)args;
        if (mems[i] && !sp_object_is(mems[i], SP_OBJECT_MEM))
            return CL_INVALID_MEM_OBJECT;
        if (mems[i] && mems[i]->context != queue->context)
            return CL_INVALID_CONTEXT;
        /* Each handle lies within the arguments. */
        if (args_bytes < sizeof(cl_mem) || place > args_bytes - sizeof(cl_mem))
            return CL_INVALID_VALUE;
    }
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNativeKernel(
    cl_command_queue command_queue, void(CL_CALLBACK *user_func)(void *), void *args,
    size_t cb_args, cl_uint num_mem_objects, const cl_mem *mem_list, const void **args_mem_loc,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = check_native(command_queue, user_func, args, cb_args, num_mem_objects, mem_list,
                                args_mem_loc);
    if (!error)
        error =
            sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;
    struct sp_command *command = sp_command_create(
        command_queue, CL_COMMAND_NATIVE_KERNEL, num_events_in_wait_list, num_mem_objects, cb_args);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    if (cb_args)
        memcpy(command->extra, args, cb_args);
    for (cl_uint i = 0; i < num_mem_objects; i++) {
        size_t place = (size_t)((uintptr_t)args_mem_loc[i] - (uintptr_t)args);
        void *address = mem_list[i] ? mem_list[i]->address : NULL;
        memcpy((unsigned char *)command->extra + place, &address, sizeof(address));
        if (!mem_list[i])
            continue;
        sp_command_use(command, &mem_list[i]->object);
        sp_command_touch(command, address, mem_list[i]->size, SP_ACCESS_READ_WRITE);
    }
    command->work.kind = SP_WORK_CALL;
    command->work.call.function = user_func;
    command->work.call.argument = command->extra;
    command->has_work = true;
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}
