/* Mapping and unmapping buffers.
 *
 * A map makes the range current for the host, which moves nothing where all devices work in the
 * host's memory. A buffer over a host pointer that has bytes of its own (mem.c) is copied to the
 * host pointer by the map and back by the unmap. What is kept is the list of mappings, by which an
 * unmap is checked and CL_MEM_MAP_COUNT is known. A mapping is in the list from the enqueueing of
 * the map to the enqueueing of the unmap. The buffer's lock guards the list; nothing else is locked
 * under it.
 */
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/mem.h"
#include "api/range.h"
#include "api/transfer.h"
#include "runtime/command.h"
#include "svm/watched_map.h"
#include "util/alloc.h"

#define WRITE_FLAGS ((cl_map_flags)(CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION))

/* Enters a mapping: CL_INVALID_OPERATION where it would overlap another one for writing. */
static cl_int add_mapping(cl_mem buffer, struct sp_mapping *mapping)
{
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&buffer->lock);
    for (struct sp_mapping *other = buffer->mappings; other && !error; other = other->next)
        if (mapping->flags & WRITE_FLAGS && other->flags & WRITE_FLAGS &&
            sp_ranges_overlap((uintptr_t)mapping->pointer, mapping->size, (uintptr_t)other->pointer,
                              other->size))
            error = CL_INVALID_OPERATION;
    if (!error) {
        mapping->next = buffer->mappings;
        buffer->mappings = mapping;
        buffer->map_count++;
    }
    pthread_mutex_unlock(&buffer->lock);
    return error;
}

/* Takes out the newest mapping that gave `pointer`; NULL where there is none. */
static struct sp_mapping *take_mapping(cl_mem buffer, const void *pointer)
{
    pthread_mutex_lock(&buffer->lock);
    struct sp_mapping **link = &buffer->mappings;
    while (*link && (*link)->pointer != pointer)
        link = &(*link)->next;
    struct sp_mapping *mapping = *link;
    if (mapping) {
        *link = mapping->next;
        buffer->map_count--;
    }
    pthread_mutex_unlock(&buffer->lock);
    return mapping;
}

/* A buffer whose bytes lie elsewhere than its host pointer says. */
static bool has_own_bytes(const struct _cl_mem *buffer)
{
    return buffer->host_ptr && buffer->host_ptr != buffer->address;
}

/* What the end of a map or unmap copies, in the command's extra bytes. */
struct host_copy {
    void *dst;
    const void *src;
    size_t bytes;         /* 0: nothing */
    const void *unmapped; /* where the map began that ends; NULL for a map */
};

static cl_int copy_at_end(struct sp_command *command, cl_int status)
{
    const struct host_copy *copy = command->data;
    if (status < 0)
        return status;
    if (copy->bytes)
        memcpy(copy->dst, copy->src, copy->bytes);
    if (copy->unmapped)
        sp_watched_map_end(command->event.context->arena, copy->unmapped);
    return status;
}

static void set_copy(struct sp_command *command, void *dst, const void *src, size_t bytes,
                     const void *unmapped)
{
    struct host_copy *copy = command->extra;
    *copy = (struct host_copy){dst, src, bytes, unmapped};
    command->data = copy;
    command->complete = copy_at_end;
}

static cl_int check_map(cl_command_queue queue, cl_mem buffer, cl_map_flags flags, size_t offset,
                        size_t size, cl_uint num_events, const cl_event *events)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_buffer_check(queue->context, buffer);
    if (error)
        return error;
    if (size == 0 || !sp_range_fits(offset, size, buffer->size))
        return CL_INVALID_VALUE;
    error = sp_map_flags_check(flags);
    if (!error)
        error = sp_wait_list_check(queue->context, num_events, events);
    if (!error)
        error = sp_buffer_check_alignment(queue->device, buffer);
    if (error)
        return error;
    if ((flags & CL_MAP_READ && buffer->flags & SP_NO_HOST_READ_FLAGS) ||
        (flags & WRITE_FLAGS && buffer->flags & SP_NO_HOST_WRITE_FLAGS))
        return CL_INVALID_OPERATION;
    return CL_SUCCESS;
}

static cl_int map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                         cl_map_flags flags, size_t offset, size_t size, cl_uint num_events,
                         const cl_event *events, cl_event *event, void **pointer)
{
    cl_int error = check_map(queue, buffer, flags, offset, size, num_events, events);
    if (error)
        return error;

    struct sp_command *command =
        sp_command_create(queue, CL_COMMAND_MAP_BUFFER, num_events, 1, sizeof(struct host_copy));
    struct sp_mapping *mapping = sp_alloc(sizeof *mapping);
    error = CL_OUT_OF_HOST_MEMORY;
    if (!command || !mapping)
        goto err;
    char *bytes = (char *)buffer->address + offset;
    mapping->pointer = buffer->host_ptr ? (char *)buffer->host_ptr + offset : bytes;
    mapping->size = size;
    mapping->flags = flags;
    *pointer = mapping->pointer;
    error = add_mapping(buffer, mapping);
    if (error)
        goto err;

    sp_command_use(command, &buffer->object);
    command->is_for_host = true;
    command->is_in_place = !has_own_bytes(buffer);
    /* What the host writes behind its own pointer comes with the unmap. */
    sp_command_touch(command, bytes, size,
                     has_own_bytes(buffer) ? SP_ACCESS_READ : sp_map_access(flags));
    if (has_own_bytes(buffer) && !(flags & CL_MAP_WRITE_INVALIDATE_REGION))
        set_copy(command, *pointer, bytes, size, NULL);
    error = sp_command_enqueue(command, num_events, events, blocking, event);
    if (error && (mapping = take_mapping(buffer, *pointer)))
        free(mapping); /* a blocking map that failed has mapped nothing */
    return error;

err:
    free(mapping);
    sp_command_discard(command);
    return error;
}

void *CL_API_CALL clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer,
                                     cl_bool blocking_map, cl_map_flags map_flags, size_t offset,
                                     size_t size, cl_uint num_events_in_wait_list,
                                     const cl_event *event_wait_list, cl_event *event,
                                     cl_int *errcode_ret)
{
    void *pointer = NULL;
    cl_int error = map_buffer(command_queue, buffer, blocking_map, map_flags, offset, size,
                              num_events_in_wait_list, event_wait_list, event, &pointer);
    sp_error_reply(errcode_ret, error);
    return error ? NULL : pointer;
}

cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem memobj,
                                           void *mapped_ptr, cl_uint num_events_in_wait_list,
                                           const cl_event *event_wait_list, cl_event *event)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_buffer_check(command_queue->context, memobj);
    if (!error)
        error =
            sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;

    struct sp_command *command =
        sp_command_create(command_queue, CL_COMMAND_UNMAP_MEM_OBJECT, num_events_in_wait_list, 1,
                          sizeof(struct host_copy));
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    struct sp_mapping *mapping = take_mapping(memobj, mapped_ptr);
    if (!mapping) {
        sp_command_discard(command);
        return CL_INVALID_VALUE;
    }
    sp_command_use(command, &memobj->object);
    command->is_for_host = true;
    if (has_own_bytes(memobj) && mapping->flags & WRITE_FLAGS) {
        char *bytes =
            (char *)memobj->address + ((char *)mapping->pointer - (char *)memobj->host_ptr);
        sp_command_touch(command, bytes, mapping->size, SP_ACCESS_DISCARD);
        set_copy(command, bytes, mapping->pointer, mapping->size, NULL);
    } else {
        set_copy(command, NULL, NULL, 0, mapping->pointer);
    }
    free(mapping);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}
