/* An in-order queue keeps its order through a chain of copies; an out-of-order queue keeps the
 * order that its events and barriers give. */
#include "check.h"

enum { STEPS = 200 };

/* Each step copies one number to the next place; only in order does the last one get it. */
static void check_chain(cl_command_queue_properties properties, bool with_events,
                        bool with_barriers)
{
    struct check_setup setup;
    check_setup_with(&setup, properties);
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, (STEPS + 1) * 128, NULL, &error);
    REQUIRE_CL(error);
    cl_uint zero = 0, value = 0xabcdef, last = 0;
    REQUIRE_CL(
        clEnqueueFillBuffer(setup.queue, buffer, &zero, 4, 0, (STEPS + 1) * 128, 0, NULL, NULL));
    REQUIRE_CL(clFinish(setup.queue));

    cl_event gate = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    cl_event event = NULL;
    CHECK_CL(clEnqueueWriteBuffer(setup.queue, buffer, CL_FALSE, 0, 4, &value, 1, &gate, &event),
             CL_SUCCESS);
    for (size_t i = 0; i < STEPS; i++) {
        cl_event next = NULL;
        if (with_barriers)
            CHECK_CL(clEnqueueBarrierWithWaitList(setup.queue, 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clEnqueueCopyBuffer(setup.queue, buffer, buffer, i * 128, (i + 1) * 128, 4,
                                     with_events ? 1 : 0, with_events ? &event : NULL, &next),
                 CL_SUCCESS);
        CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
        event = next;
    }
    CHECK(check_status(event) > CL_COMPLETE);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(
        clEnqueueReadBuffer(setup.queue, buffer, CL_TRUE, STEPS * 128, 4, &last, 1, &event, NULL),
        CL_SUCCESS);
    CHECK(last == value);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
}

int main(void)
{
    check_chain(0, false, false);
    check_chain(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, true, false);
    check_chain(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, false, true);
    return check_result();
}
