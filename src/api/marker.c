/* Markers and barriers, with wait lists and in the forms of OpenCL 1.1. They are commands without
 * work: what they wait for, and what waits for them, is all there is. No state, no lock.
 */
#include "runtime/command.h"
#include "runtime/context.h"

/* Without a wait list it waits for all that was enqueued before (sp_command_enqueue sees to
 * that); with `is_barrier` all that comes later waits for it. */
static cl_int enqueue(cl_command_queue queue, cl_command_type type, bool is_barrier,
                      cl_uint num_events, const cl_event *events, cl_event *event)
{
    struct sp_command *command = sp_command_create(queue, type, num_events, 0, 0);
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    command->is_barrier = is_barrier;
    return sp_command_enqueue(command, num_events, events, false, event);
}

static cl_int check_and_enqueue(cl_command_queue queue, cl_command_type type, bool is_barrier,
                                cl_uint num_events, const cl_event *events, cl_event *event)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_wait_list_check(queue->context, num_events, events);
    return error ? error : enqueue(queue, type, is_barrier, num_events, events, event);
}

cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue command_queue,
                                               cl_uint num_events_in_wait_list,
                                               const cl_event *event_wait_list, cl_event *event)
{
    return check_and_enqueue(command_queue, CL_COMMAND_MARKER, false, num_events_in_wait_list,
                             event_wait_list, event);
}

cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue command_queue,
                                                cl_uint num_events_in_wait_list,
                                                const cl_event *event_wait_list, cl_event *event)
{
    return check_and_enqueue(command_queue, CL_COMMAND_BARRIER, true, num_events_in_wait_list,
                             event_wait_list, event);
}

cl_int CL_API_CALL clEnqueueMarker(cl_command_queue command_queue, cl_event *event)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    if (!event)
        return CL_INVALID_VALUE;
    return enqueue(command_queue, CL_COMMAND_MARKER, false, 0, NULL, event);
}

cl_int CL_API_CALL clEnqueueBarrier(cl_command_queue command_queue)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    return enqueue(command_queue, CL_COMMAND_BARRIER, true, 0, NULL, NULL);
}

/* Its list is an argument of its own, so errors in it have names of their own. */
cl_int CL_API_CALL clEnqueueWaitForEvents(cl_command_queue command_queue, cl_uint num_events,
                                          const cl_event *event_list)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    if (num_events == 0 || !event_list)
        return CL_INVALID_VALUE;
    cl_int error = sp_wait_list_check(command_queue->context, num_events, event_list);
    if (error)
        return error == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : error;
    return enqueue(command_queue, CL_COMMAND_BARRIER, true, num_events, event_list, NULL);
}
