/* Shared virtual memory: allocating and freeing it, and the commands on it.
 *
 * An allocation is a region of the context's arena (svm/heap.h); its flags are those of
 * clSVMAlloc. Mapping and migrating say what is going to be used where, and the runtime moves what
 * must move: nothing where all devices work in the host's memory. Copies and fills take any mix of
 * SVM and ordinary pointers. No state of its own, no lock.
 */
#include <stdlib.h>
#include <string.h>

#include "api/mem.h"
#include "api/range.h"
#include "api/transfer.h"
#include "runtime/command.h"
#include "svm/check.h"
#include "svm/heap.h"
#include "svm/pool.h"
#include "svm/watched_map.h"
#include "util/symbol.h"

#define ACCESS_FLAGS ((cl_svm_mem_flags)(CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY))
#define SVM_FLAGS ((cl_svm_mem_flags)(CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS))

static bool flags_are_valid(cl_context context, cl_svm_mem_flags flags)
{
    cl_svm_mem_flags access = flags & ACCESS_FLAGS;
    if (flags & ~(ACCESS_FLAGS | SVM_FLAGS) || access & (access - 1))
        return false;
    if (flags & CL_MEM_SVM_ATOMICS && !(flags & CL_MEM_SVM_FINE_GRAIN_BUFFER))
        return false;
    uint32_t levels = sp_context_svm_any(context);
    uint32_t needed = SP_SVM_COARSE;
    if (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
        needed |= SP_SVM_FINE;
    if (flags & CL_MEM_SVM_ATOMICS)
        needed |= SP_SVM_ATOMICS;
    return (levels & needed) == needed;
}

static bool fits_all_devices(cl_context context, size_t size)
{
    for (cl_uint i = 0; i < context->num_devices; i++)
        if (size > context->devices[i]->device->info.max_alloc_bytes)
            return false;
    return true;
}

/* A region that is too large for a device of the context, in the memory of several that see each
 * other's (docs/pooled-memory.md); NULL where that cannot be. */
static void *alloc_pooled(cl_context context, cl_svm_mem_flags flags, size_t size,
                          cl_uint alignment)
{
    uint32_t agents = 0;
    struct sp_pool *pool;
    if (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
        return NULL;
    for (cl_uint i = 0; i < context->num_devices; i++)
        if (context->devices[i]->device->info.own_memory)
            agents |= 1u << context->devices[i]->device->agent;
    if (!agents || sp_pool_plan(size, agents, &pool) || !pool)
        return NULL; /* without a pool it is the host's memory that is too small */
    void *start = sp_arena_alloc_pooled(context->arena, size, alignment, flags, pool);
    if (!start)
        free(pool);
    return start;
}

void *CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                             cl_uint alignment)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT) || !flags_are_valid(context, flags) || size == 0)
        return NULL;
    if (alignment && (!sp_is_power_of_two(alignment) || alignment > SP_MAX_ALIGNMENT))
        return NULL;
    if (!fits_all_devices(context, size))
        return alloc_pooled(context, flags, size, alignment);
    enum sp_path path = flags & CL_MEM_SVM_ATOMICS             ? SP_PATH_ATOMIC
                        : flags & CL_MEM_SVM_FINE_GRAIN_BUFFER ? SP_PATH_HOME
                                                               : SP_PATH_PRIVATE;
    return sp_arena_alloc(context->arena, size, alignment, flags, path);
}

/* Frees an SVM allocation; anything else, a buffer's memory too, is left alone. */
static void free_svm(cl_context context, void *pointer)
{
    struct sp_region_info region;
    bool is_buffer = sp_region_find(pointer, &region) && region.flags & SP_REGION_IS_BUFFER;
    if (!is_buffer && sp_arena_free(context->arena, pointer) && sp_check_is_on)
        sp_check_freed_again(pointer);
}

void CL_API_CALL clSVMFree(cl_context context, void *svm_pointer)
{
    if (svm_pointer && sp_object_is(context, SP_OBJECT_CONTEXT))
        free_svm(context, svm_pointer);
}

/* What every SVM command checks first. */
static cl_int check_queue(cl_command_queue queue)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    return queue->device->device->info.svm_levels ? CL_SUCCESS : CL_INVALID_OPERATION;
}

typedef void(CL_CALLBACK *svm_free_function)(cl_command_queue queue, cl_uint num_svm_pointers,
                                             void *svm_pointers[], void *user_data);

/* What an SVM free remembers, in the command's extra bytes. */
struct svm_free {
    svm_free_function function; /* NULL: the memory is freed here */
    void *user_data;
    cl_uint num_pointers;
    void *pointers[];
};

/* A free whose wait list failed was not done, so nothing is freed and nobody is called. */
static cl_int complete_free(struct sp_command *command, cl_int status)
{
    struct svm_free *request = command->data;
    if (status < 0)
        return status;
    if (request->function) {
        request->function(command->event.queue, request->num_pointers, request->pointers,
                          request->user_data);
        return status;
    }
    sp_symbol_act_for(command->site);
    for (cl_uint i = 0; i < request->num_pointers; i++)
        free_svm(command->event.context, request->pointers[i]);
    sp_symbol_act_for(NULL);
    return status;
}

cl_int CL_API_CALL clEnqueueSVMFree(cl_command_queue command_queue, cl_uint num_svm_pointers,
                                    void *svm_pointers[], svm_free_function pfn_free_func,
                                    void *user_data, cl_uint num_events_in_wait_list,
                                    const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = check_queue(command_queue);
    if (error)
        return error;
    if ((num_svm_pointers == 0) != (svm_pointers == NULL))
        return CL_INVALID_VALUE;
    error = sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;
    if (pfn_free_func && sp_callback_start())
        return CL_OUT_OF_HOST_MEMORY;

    size_t bytes = num_svm_pointers * sizeof svm_pointers[0];
    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_SVM_FREE, num_events_in_wait_list, 0,
                          sizeof(struct svm_free) + bytes);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    struct svm_free *request = command->extra;
    request->function = pfn_free_func;
    request->user_data = user_data;
    request->num_pointers = num_svm_pointers;
    if (bytes)
        memcpy(request->pointers, svm_pointers, bytes);
    command->data = request;
    command->complete = complete_free;
    command->on_callback_thread = pfn_free_func != NULL;
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}

cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue command_queue, cl_bool blocking_copy,
                                      void *dst_ptr, const void *src_ptr, size_t size,
                                      cl_uint num_events_in_wait_list,
                                      const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = check_queue(command_queue);
    if (error)
        return error;
    if (!dst_ptr || !src_ptr)
        return CL_INVALID_VALUE;
    error = sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;
    if (sp_ranges_overlap((uintptr_t)dst_ptr, size, (uintptr_t)src_ptr, size))
        return CL_MEM_COPY_OVERLAP;

    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_SVM_MEMCPY, num_events_in_wait_list, 0, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    sp_command_copy(command, dst_ptr, src_ptr, size);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, blocking_copy,
                              event);
}

cl_int CL_API_CALL clEnqueueSVMMemFill(cl_command_queue command_queue, void *svm_ptr,
                                       const void *pattern, size_t pattern_size, size_t size,
                                       cl_uint num_events_in_wait_list,
                                       const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = check_queue(command_queue);
    if (error)
        return error;
    if (!svm_ptr)
        return CL_INVALID_VALUE;
    error = sp_pattern_check(pattern, pattern_size, (uintptr_t)svm_ptr, size);
    if (!error)
        error =
            sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;

    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_SVM_MEMFILL, num_events_in_wait_list, 0, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    sp_command_fill(command, svm_ptr, size, pattern, pattern_size);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}

/* Where no device has memory of its own, mapping and migrating only hold a place in the queue's
 * order. Where nobody can tell whether that was there, no command is made: no event was asked for,
 * and there is nothing to wait for. */
static bool is_needless(cl_command_queue queue, bool blocking, cl_uint num_events,
                        const cl_event *event)
{
    return !queue->context->is_shared && !event && num_events == 0 &&
           (!blocking || sp_queue_is_idle(queue));
}

cl_int CL_API_CALL clEnqueueSVMMap(cl_command_queue command_queue, cl_bool blocking_map,
                                   cl_map_flags flags, void *svm_ptr, size_t size,
                                   cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
                                   cl_event *event)
{
    cl_int error = check_queue(command_queue);
    if (error)
        return error;
    if (!svm_ptr || size == 0)
        return CL_INVALID_VALUE;
    error = sp_map_flags_check(flags);
    if (!error)
        error =
            sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error || is_needless(command_queue, blocking_map, num_events_in_wait_list, event))
        return error;
    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_SVM_MAP, num_events_in_wait_list, 0, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    command->is_for_host = command->is_in_place = true;
    sp_command_touch(command, svm_ptr, size, sp_map_access(flags));
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, blocking_map,
                              event);
}

static cl_int complete_unmap(struct sp_command *command, cl_int status)
{
    if (status >= 0)
        sp_watched_map_end(command->event.context->arena, command->data);
    return status;
}

cl_int CL_API_CALL clEnqueueSVMUnmap(cl_command_queue command_queue, void *svm_ptr,
                                     cl_uint num_events_in_wait_list,
                                     const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = check_queue(command_queue);
    if (error)
        return error;
    if (!svm_ptr)
        return CL_INVALID_VALUE;
    error = sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error || is_needless(command_queue, false, num_events_in_wait_list, event))
        return error;
    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_SVM_UNMAP, num_events_in_wait_list, 0, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    command->is_for_host = true;
    command->data = svm_ptr;
    command->complete = complete_unmap;
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}

/* Whether the range, or with size 0 the pointer, lies in one SVM allocation. */
static bool is_in_allocation(const void *pointer, size_t size)
{
    struct sp_region_info region;
    if (!sp_region_find(pointer, &region) || region.flags & SP_REGION_IS_BUFFER)
        return false;
    return sp_range_fits((size_t)((const char *)pointer - (const char *)region.start), size,
                         region.bytes);
}

cl_int CL_API_CALL clEnqueueSVMMigrateMem(cl_command_queue command_queue, cl_uint num_svm_pointers,
                                          const void **svm_pointers, const size_t *sizes,
                                          cl_mem_migration_flags flags,
                                          cl_uint num_events_in_wait_list,
                                          const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = check_queue(command_queue);
    if (error)
        return error;
    if (num_svm_pointers == 0 || !svm_pointers)
        return CL_INVALID_VALUE;
    error = sp_migration_flags_check(flags);
    if (error)
        return error;
    for (cl_uint i = 0; i < num_svm_pointers; i++)
        if (!is_in_allocation(svm_pointers[i], sizes ? sizes[i] : 0))
            return CL_INVALID_VALUE;
    error = sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error || is_needless(command_queue, false, num_events_in_wait_list, event))
        return error;
    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_SVM_MIGRATE_MEM, num_events_in_wait_list, 0, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < num_svm_pointers; i++)
        sp_command_migrate(command, svm_pointers[i], sizes ? sizes[i] : 0, flags);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}
