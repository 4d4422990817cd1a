/* Every object counts retains and releases, and uses by other objects do not show. */
#include "check.h"

static struct check_setup setup;

static cl_uint context_count(void)
{
    cl_uint value = 0;
    CHECK_CL(
        clGetContextInfo(setup.context, CL_CONTEXT_REFERENCE_COUNT, sizeof value, &value, NULL),
        CL_SUCCESS);
    return value;
}

static cl_uint queue_count(void)
{
    cl_uint value = 0;
    CHECK_CL(
        clGetCommandQueueInfo(setup.queue, CL_QUEUE_REFERENCE_COUNT, sizeof value, &value, NULL),
        CL_SUCCESS);
    return value;
}

static cl_uint buffer_count(cl_mem buffer)
{
    cl_uint value = 0;
    CHECK_CL(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof value, &value, NULL),
             CL_SUCCESS);
    return value;
}

static cl_uint event_count(cl_event event)
{
    cl_uint value = 0;
    CHECK_CL(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof value, &value, NULL),
             CL_SUCCESS);
    return value;
}

int main(void)
{
    check_setup(&setup);
    cl_int error;
    CHECK(context_count() == 1 && queue_count() == 1);
    CHECK_CL(clRetainContext(setup.context), CL_SUCCESS);
    CHECK_CL(clRetainCommandQueue(setup.queue), CL_SUCCESS);
    CHECK(context_count() == 2 && queue_count() == 2);
    CHECK_CL(clReleaseContext(setup.context), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(setup.queue), CL_SUCCESS);

    cl_mem buffer = clCreateBuffer(setup.context, 0, 4096, NULL, &error);
    REQUIRE_CL(error);
    const cl_buffer_region region = {0, 128};
    cl_mem sub = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    REQUIRE_CL(error);
    CHECK(buffer_count(buffer) == 1 && buffer_count(sub) == 1);
    cl_event gate = clCreateUserEvent(setup.context, &error), event = NULL;
    REQUIRE_CL(error);
    cl_uint pattern = 1;
    CHECK_CL(clEnqueueFillBuffer(setup.queue, sub, &pattern, 4, 0, 128, 1, &gate, &event),
             CL_SUCCESS);
    CHECK(buffer_count(buffer) == 1 && buffer_count(sub) == 1);
    CHECK(event_count(gate) == 1 && event_count(event) == 1);
    CHECK(context_count() == 1 && queue_count() == 1);
    CHECK_CL(clRetainEvent(event), CL_SUCCESS);
    CHECK_CL(clRetainMemObject(sub), CL_SUCCESS);
    CHECK(event_count(event) == 2 && buffer_count(sub) == 2);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &event), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    CHECK(event_count(event) == 1);
    cl_command_queue queue = NULL;
    CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL), CL_SUCCESS);
    CHECK(queue == setup.queue);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(sub), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(sub), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);

    /* A queue that is released early finishes its work; its event stays usable. */
    buffer = clCreateBuffer(setup.context, 0, 4096, NULL, &error);
    REQUIRE_CL(error);
    cl_command_queue early = clCreateCommandQueue(setup.context, setup.device, 0, &error);
    REQUIRE_CL(error);
    CHECK_CL(clEnqueueFillBuffer(early, buffer, &pattern, 4, 0, 4096, 0, NULL, &event), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(early), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &event), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
