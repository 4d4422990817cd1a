/* What tests of several devices share: one context of all of them, with a queue on each. */
#ifndef CHECK_DEVICES_H
#define CHECK_DEVICES_H

#include "check_program.h"

/* A context of all the platform's devices, which are `expected`; fills in devices and queues. */
__attribute__((unused)) static cl_context
context_of_all(cl_uint expected, cl_device_id *devices, cl_command_queue *queues,
               void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
               void *user_data)
{
    cl_int error;
    cl_uint count = 0;
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_ALL, expected, devices, &count));
    REQUIRE(count == expected);
    cl_context context = clCreateContext(NULL, count, devices, notify, user_data, &error);
    REQUIRE_CL(error);
    for (cl_uint i = 0; i < count; i++) {
        queues[i] = clCreateCommandQueueWithProperties(context, devices[i], NULL, &error);
        REQUIRE_CL(error);
    }
    return context;
}

__attribute__((unused)) static cl_int status_of(cl_event event)
{
    cl_int status = 1;
    CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
             CL_SUCCESS);
    return status;
}

/* Its status when it has ended, and the event is released. */
__attribute__((unused)) static cl_int end_of(cl_event event)
{
    clWaitForEvents(1, &event);
    cl_int status = status_of(event);
    clReleaseEvent(event);
    return status;
}

#endif
