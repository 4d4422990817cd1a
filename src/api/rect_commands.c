/* Rectangular reads, writes and copies of buffers.
 *
 * One validator (rect_side_init) serves the buffer's and the host's side alike: it completes the
 * pitches, computes where the rectangle begins and ends, and refuses what does not fit or
 * overflows. A side is then a start and two pitches. No state, no lock.
 */
#include "api/mem.h"
#include "api/range.h"
#include "runtime/command.h"

/* Where a rectangle lies in one of the two memories; all in bytes. */
struct rect_side {
    size_t start; /* from the memory's begin */
    size_t span;  /* from the first to behind the last byte */
    size_t row_pitch, slice_pitch;
};

/* sum = a * b + c; false where that overflows. */
static bool multiply_add(size_t a, size_t b, size_t c, size_t *sum)
{
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, sum);
}

static bool region_is_valid(const size_t *region)
{
    return region && region[0] && region[1] && region[2];
}

/* Checks one side against a memory of `limit` bytes: CL_INVALID_VALUE. `region` is valid; a pitch
 * of 0 stands for rows, or slices, without gaps. */
static cl_int rect_side_init(struct rect_side *side, const size_t *origin, const size_t *region,
                             size_t row_pitch, size_t slice_pitch, size_t limit)
{
    if (!origin)
        return CL_INVALID_VALUE;
    if (row_pitch == 0)
        row_pitch = region[0];
    else if (row_pitch < region[0])
        return CL_INVALID_VALUE;
    size_t smallest_slice;
    if (__builtin_mul_overflow(region[1], row_pitch, &smallest_slice))
        return CL_INVALID_VALUE;
    if (slice_pitch == 0)
        slice_pitch = smallest_slice;
    else if (slice_pitch < smallest_slice || slice_pitch % row_pitch)
        return CL_INVALID_VALUE;

    side->row_pitch = row_pitch;
    side->slice_pitch = slice_pitch;
    if (!multiply_add(origin[1], row_pitch, origin[0], &side->start) ||
        !multiply_add(origin[2], slice_pitch, side->start, &side->start) ||
        !multiply_add(region[1] - 1, row_pitch, region[0], &side->span) ||
        !multiply_add(region[2] - 1, slice_pitch, side->span, &side->span))
        return CL_INVALID_VALUE;
    return sp_range_fits(side->start, side->span, limit) ? CL_SUCCESS : CL_INVALID_VALUE;
}

static void command_copy_rect(struct sp_command *command, void *dst,
                              const struct rect_side *dst_side, const void *src,
                              const struct rect_side *src_side, const size_t *region)
{
    command->has_work = true;
    command->work.kind = SP_WORK_COPY_RECT;
    command->work.rect.dst = (char *)dst + dst_side->start;
    command->work.rect.src = (const char *)src + src_side->start;
    command->work.rect.rect = (struct sp_rect){
        .width = region[0],
        .height = region[1],
        .depth = region[2],
        .dst_row_pitch = dst_side->row_pitch,
        .dst_slice_pitch = dst_side->slice_pitch,
        .src_row_pitch = src_side->row_pitch,
        .src_slice_pitch = src_side->slice_pitch,
    };
    sp_command_touch(command, command->work.rect.src, src_side->span, SP_ACCESS_READ);
    /* The bytes between the rows stay as they are. */
    sp_command_touch(command, command->work.rect.dst, dst_side->span, SP_ACCESS_READ_WRITE);
}

/* The arguments that reading and writing share; ptr is the host's side. */
struct host_rect {
    const size_t *buffer_origin, *host_origin, *region;
    size_t buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch;
    void *ptr;
};

static cl_int enqueue_host_rect(cl_command_queue queue, cl_mem buffer, bool is_write,
                                cl_bool blocking, const struct host_rect *rect, cl_uint num_events,
                                const cl_event *events, cl_event *event)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_buffer_check(queue->context, buffer);
    if (error)
        return error;
    struct rect_side buffer_side, host_side;
    if (!region_is_valid(rect->region) || !rect->ptr)
        return CL_INVALID_VALUE;
    error = rect_side_init(&buffer_side, rect->buffer_origin, rect->region, rect->buffer_row_pitch,
                           rect->buffer_slice_pitch, buffer->size);
    if (!error)
        error = rect_side_init(&host_side, rect->host_origin, rect->region, rect->host_row_pitch,
                               rect->host_slice_pitch, SIZE_MAX);
    if (!error)
        error = sp_wait_list_check(queue->context, num_events, events);
    if (!error)
        error = sp_buffer_check_alignment(queue->device, buffer);
    if (error)
        return error;
    if (buffer->flags & (is_write ? SP_NO_HOST_WRITE_FLAGS : SP_NO_HOST_READ_FLAGS))
        return CL_INVALID_OPERATION;

    struct sp_command *command = sp_command_create(
        queue, is_write ? CL_COMMAND_WRITE_BUFFER_RECT : CL_COMMAND_READ_BUFFER_RECT, num_events, 1,
        0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    sp_command_use(command, &buffer->object);
    if (is_write)
        command_copy_rect(command, buffer->address, &buffer_side, rect->ptr, &host_side,
                          rect->region);
    else
        command_copy_rect(command, rect->ptr, &host_side, buffer->address, &buffer_side,
                          rect->region);
    return sp_command_enqueue(command, num_events, events, blocking, event);
}

cl_int CL_API_CALL clEnqueueReadBufferRect(cl_command_queue command_queue, cl_mem buffer,
                                           cl_bool blocking_read, const size_t *buffer_origin,
                                           const size_t *host_origin, const size_t *region,
                                           size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                           size_t host_row_pitch, size_t host_slice_pitch,
                                           void *ptr, cl_uint num_events_in_wait_list,
                                           const cl_event *event_wait_list, cl_event *event)
{
    const struct host_rect rect = {
        buffer_origin,      host_origin,    region,           buffer_row_pitch,
        buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr};
    return enqueue_host_rect(command_queue, buffer, false, blocking_read, &rect,
                             num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL clEnqueueWriteBufferRect(cl_command_queue command_queue, cl_mem buffer,
                                            cl_bool blocking_write, const size_t *buffer_origin,
                                            const size_t *host_origin, const size_t *region,
                                            size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                            size_t host_row_pitch, size_t host_slice_pitch,
                                            const void *ptr, cl_uint num_events_in_wait_list,
                                            const cl_event *event_wait_list, cl_event *event)
{
    const struct host_rect rect = {buffer_origin,    host_origin,        region,
                                   buffer_row_pitch, buffer_slice_pitch, host_row_pitch,
                                   host_slice_pitch, (void *)ptr};
    return enqueue_host_rect(command_queue, buffer, true, blocking_write, &rect,
                             num_events_in_wait_list, event_wait_list, event);
}

/* Whether stretches of `length` bytes that begin at a and at b and repeat every `period` bytes
 * never meet. */
static bool never_meet(uintptr_t a, uintptr_t b, size_t length, size_t period)
{
    size_t a_phase = a % period, b_phase = b % period;
    size_t distance = a_phase <= b_phase ? b_phase - a_phase : period - (a_phase - b_phase);
    return distance >= length && period - distance >= length;
}

/* Whether two rectangles of one shape have a byte in common (the specification's appendix on copy
 * overlap). With different pitches, which only two sub-buffers can have, one that lies in
 * the other's gaps counts as overlapping. */
static bool rects_overlap(uintptr_t src, const struct rect_side *src_side, uintptr_t dst,
                          const struct rect_side *dst_side, const size_t *region)
{
    if (!sp_ranges_overlap(src, src_side->span, dst, dst_side->span))
        return false;
    if (src_side->row_pitch != dst_side->row_pitch ||
        src_side->slice_pitch != dst_side->slice_pitch)
        return true;
    size_t slice_span = (region[1] - 1) * src_side->row_pitch + region[0];
    return !never_meet(src, dst, region[0], src_side->row_pitch) &&
           !never_meet(src, dst, slice_span, src_side->slice_pitch);
}

cl_int CL_API_CALL clEnqueueCopyBufferRect(cl_command_queue command_queue, cl_mem src_buffer,
                                           cl_mem dst_buffer, const size_t *src_origin,
                                           const size_t *dst_origin, const size_t *region,
                                           size_t src_row_pitch, size_t src_slice_pitch,
                                           size_t dst_row_pitch, size_t dst_slice_pitch,
                                           cl_uint num_events_in_wait_list,
                                           const cl_event *event_wait_list, cl_event *event)
{
    cl_int error = sp_buffer_copy_check(command_queue, src_buffer, dst_buffer);
    if (error)
        return error;
    struct rect_side src_side, dst_side;
    if (!region_is_valid(region))
        return CL_INVALID_VALUE;
    error = rect_side_init(&src_side, src_origin, region, src_row_pitch, src_slice_pitch,
                           src_buffer->size);
    if (!error)
        error = rect_side_init(&dst_side, dst_origin, region, dst_row_pitch, dst_slice_pitch,
                               dst_buffer->size);
    if (error)
        return error;
    if (src_buffer == dst_buffer &&
        (src_side.row_pitch != dst_side.row_pitch || src_side.slice_pitch != dst_side.slice_pitch))
        return CL_INVALID_VALUE;
    error = sp_wait_list_check(command_queue->context, num_events_in_wait_list, event_wait_list);
    if (error)
        return error;
    if (sp_buffers_share_bytes(src_buffer, dst_buffer) &&
        rects_overlap((uintptr_t)src_buffer->address + src_side.start, &src_side,
                      (uintptr_t)dst_buffer->address + dst_side.start, &dst_side, region))
        return CL_MEM_COPY_OVERLAP;

    struct sp_command *command = sp_command_create(command_queue, CL_COMMAND_COPY_BUFFER_RECT,
                                                   num_events_in_wait_list, 2, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    sp_command_use(command, &src_buffer->object);
    sp_command_use(command, &dst_buffer->object);
    command_copy_rect(command, dst_buffer->address, &dst_side, src_buffer->address, &src_side,
                      region);
    return sp_command_enqueue(command, num_events_in_wait_list, event_wait_list, false, event);
}
