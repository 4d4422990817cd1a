/* Events as the application sees them: waiting, asking, callbacks, and user events. How a status
 * comes about is the runtime's (runtime/event.h). No state, no lock.
 */
#include "runtime/event.h"

#include "api/info.h"
#include "runtime/context.h"
#include "runtime/queue.h"

cl_event CL_API_CALL clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
    cl_event event = NULL;
    cl_int error = sp_object_is(context, SP_OBJECT_CONTEXT) ? sp_user_event_create(context, &event)
                                                            : CL_INVALID_CONTEXT;
    sp_error_reply(errcode_ret, error);
    return error ? NULL : event;
}

cl_int CL_API_CALL clSetUserEventStatus(cl_event event, cl_int execution_status)
{
    if (!sp_object_is(event, SP_OBJECT_EVENT) || event->type != CL_COMMAND_USER)
        return CL_INVALID_EVENT;
    if (execution_status > CL_COMPLETE)
        return CL_INVALID_VALUE;
    return sp_user_event_end(event, execution_status);
}

cl_int CL_API_CALL clWaitForEvents(cl_uint num_events, const cl_event *event_list)
{
    if (num_events == 0 || !event_list)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_events; i++)
        if (!sp_object_is(event_list[i], SP_OBJECT_EVENT))
            return CL_INVALID_EVENT;
    for (cl_uint i = 1; i < num_events; i++)
        if (event_list[i]->context != event_list[0]->context)
            return CL_INVALID_CONTEXT;

    cl_int error = CL_SUCCESS;
    for (cl_uint i = 0; i < num_events; i++)
        if (sp_event_wait(event_list[i]) < 0)
            error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return error;
}

cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info param_name, size_t param_value_size,
                                  void *param_value, size_t *param_value_size_ret)
{
    if (!sp_object_is(event, SP_OBJECT_EVENT))
        return CL_INVALID_EVENT;
    switch (param_name) {
    case CL_EVENT_COMMAND_QUEUE:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_command_queue, event->queue);
    case CL_EVENT_CONTEXT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_context,
                                   event->context);
    case CL_EVENT_COMMAND_TYPE:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_command_type, event->type);
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_int,
                                   sp_event_status(event));
    case CL_EVENT_REFERENCE_COUNT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_uint,
                                   sp_object_handles(&event->object));
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info param_name,
                                           size_t param_value_size, void *param_value,
                                           size_t *param_value_size_ret)
{
    if (!sp_object_is(event, SP_OBJECT_EVENT))
        return CL_INVALID_EVENT;
    if (!event->queue || !(event->queue->properties & CL_QUEUE_PROFILING_ENABLE) ||
        sp_event_status(event) != CL_COMPLETE)
        return CL_PROFILING_INFO_NOT_AVAILABLE;

    cl_ulong time;
    switch (param_name) {
    case CL_PROFILING_COMMAND_QUEUED:
        time = event->queued_ns;
        break;
    case CL_PROFILING_COMMAND_SUBMIT:
        time = event->submit_ns;
        break;
    case CL_PROFILING_COMMAND_START:
        time = event->start_ns;
        break;
    case CL_PROFILING_COMMAND_END:
    case CL_PROFILING_COMMAND_COMPLETE: /* no command has children on the device */
        time = event->end_ns;
        break;
    default:
        return CL_INVALID_VALUE;
    }
    return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_ulong, time);
}

cl_int CL_API_CALL clSetEventCallback(cl_event event, cl_int command_exec_callback_type,
                                      sp_event_notify pfn_notify, void *user_data)
{
    if (!sp_object_is(event, SP_OBJECT_EVENT))
        return CL_INVALID_EVENT;
    if (!pfn_notify ||
        (command_exec_callback_type != CL_SUBMITTED && command_exec_callback_type != CL_RUNNING &&
         command_exec_callback_type != CL_COMPLETE))
        return CL_INVALID_VALUE;
    return sp_event_add_callback(event, command_exec_callback_type, pfn_notify, user_data);
}

cl_int CL_API_CALL clRetainEvent(cl_event event)
{
    if (!sp_object_is(event, SP_OBJECT_EVENT))
        return CL_INVALID_EVENT;
    sp_object_retain(&event->object);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseEvent(cl_event event)
{
    if (!sp_object_is(event, SP_OBJECT_EVENT))
        return CL_INVALID_EVENT;
    sp_object_release(&event->object);
    return CL_SUCCESS;
}
