/* Reading, writing, copying, filling and migrating buffers. Each entry point checks its arguments
 * in the specification's order, makes a command that keeps the buffers alive, and
 * enqueues it. No state, no lock.
 */
#include "api/mem.h"
#include "api/range.h"
#include "api/transfer.h"
#include "runtime/command.h"

/* A read (is_write false) or a write of one range, ptr being the host's side. */
static cl_int enqueue_host_transfer(cl_command_queue queue, cl_mem buffer, bool is_write,
                                    cl_bool blocking, size_t offset, size_t size, void *ptr,
                                    cl_uint num_events, const cl_event *events, cl_event *event)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_buffer_check(queue->context, buffer);
    if (error)
        return error;
    if (!ptr || !sp_range_fits(offset, size, buffer->size))
        return CL_INVALID_VALUE;
    error = sp_wait_list_check(queue->context, num_events, events);
    if (!error)
        error = sp_buffer_check_alignment(queue->device, buffer);
    if (error)
        return error;
    if (buffer->flags & (is_write ? SP_NO_HOST_WRITE_FLAGS : SP_NO_HOST_READ_FLAGS))
        return CL_INVALID_OPERATION;

    struct sp_command *command = sp_command_create(
        queue, is_write ? CL_COMMAND_WRITE_BUFFER : CL_COMMAND_READ_BUFFER, num_events, 1, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    sp_command_use(command, &buffer->object);
    char *bytes = (char *)buffer->address + offset;
    if (is_write)
        sp_command_copy(command, bytes, ptr, size);
    else
        sp_command_copy(command, ptr, bytes, size);
    return sp_command_enqueue(command, num_events, events, blocking, event);
}

cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer,
                                       cl_bool blocking_read, size_t offset, size_t size, void *ptr,
                                       cl_uint num_events_in_wait_list,
                                       const cl_event *event_wait_list, cl_event *event)
{
    return enqueue_host_transfer(command_queue, buffer, false, blocking_read, offset, size, ptr,
                                 num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer,
                                        cl_bool blocking_write, size_t offset, size_t size,
                                        const void *ptr, cl_uint num_events_in_wait_list,
                                        const cl_event *event_wait_list, cl_event *event)
{
    return enqueue_host_transfer(command_queue, buffer, true, blocking_write, offset, size,
                                 (void *)ptr, num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue command_queue, cl_mem src_buffer,
                                       cl_mem dst_buffer, size_t src_offset, size_t dst_offset,
                                       size_t size, cl_uint num_events_in_wait_list,
                                       const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = sp_buffer_copy_check(command_queue, src_buffer, dst_buffer);
    if (error)
        return error;
    if (!sp_range_fits(src_offset, size, src_buffer->size) ||
        !sp_range_fits(dst_offset, size, dst_buffer->size))
        return CL_INVALID_VALUE;
    error = sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;
    const char *src = (const char *)src_buffer->address + src_offset;
    char *dst = (char *)dst_buffer->address + dst_offset;
    if (sp_buffers_share_bytes(src_buffer, dst_buffer) &&
        sp_ranges_overlap((uintptr_t)src, size, (uintptr_t)dst, size))
        return CL_MEM_COPY_OVERLAP;

    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_COPY_BUFFER, num_events_in_wait_list, 2, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    sp_command_use(command, &src_buffer->object);
    sp_command_use(command, &dst_buffer->object);
    sp_command_copy(command, dst, src, size);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}

cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue command_queue, cl_mem buffer,
                                       const void *pattern, size_t pattern_size, size_t offset,
                                       size_t size, cl_uint num_events_in_wait_list,
                                       const cl_event *event_wait_list, cl_event *event)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_buffer_check(command_queue->context, buffer);
    if (error)
        return error;
    if (!sp_range_fits(offset, size, buffer->size))
        return CL_INVALID_VALUE;
    error = sp_pattern_check(pattern, pattern_size, offset, size);
    if (!error)
        error =
            sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (!error)
        error = sp_buffer_check_alignment(command_queue->device, buffer);
    if (error)
        return error;

    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_FILL_BUFFER, num_events_in_wait_list, 1, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    sp_command_use(command, &buffer->object);
    sp_command_fill(command, (char *)buffer->address + offset, size, pattern, pattern_size);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}

cl_int CL_API_CALL clEnqueueMigrateMemObjects(cl_command_queue command_queue,
                                              cl_uint num_mem_objects, const cl_mem *mem_objects,
                                              cl_mem_migration_flags flags,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    if (num_mem_objects == 0 || !mem_objects)
        return CL_INVALID_VALUE;
    cl_int error = CL_SUCCESS;
    for (cl_uint i = 0; !error && i < num_mem_objects; i++)
        error = sp_buffer_check(command_queue->context, mem_objects[i]);
    if (!error)
        error = sp_migration_flags_check(flags);
    if (!error)
        error =
            sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;

    struct sp_command *command = sp_command_create(command_queue, CL_COMMAND_MIGRATE_MEM_OBJECTS,
                                                   num_events_in_wait_list, num_mem_objects, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < num_mem_objects; i++)
        sp_command_use(command, &mem_objects[i]->object);
    for (cl_uint i = 0; i < num_mem_objects; i++)
        sp_command_migrate(command, mem_objects[i]->address, mem_objects[i]->size, flags);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}
